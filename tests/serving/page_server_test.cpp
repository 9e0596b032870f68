// Sends handwritten requests to the server.
#include "prism/serving/page_server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <stdexcept>
#include <thread>

#include "prism/core/error.h"

namespace prism {
namespace {

/// A server in its own thread, until it goes out of scope.
class Running {
 public:
  explicit Running(std::function<ServedPage()> page)
      : server_(0), thread_([this, page = std::move(page)] { server_.run(page, [this] { return done_.load(); }); }) {}
  ~Running() {
    done_ = true;
    thread_.join();
  }
  int port() const { return server_.port(); }

  /// Sends `request` unchanged and returns the complete answer.
  std::string ask(const std::string& request) const {
    const int client = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in place{};
    place.sin_family = AF_INET;
    place.sin_port = htons(static_cast<uint16_t>(port()));
    place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(client, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0)
      throw std::runtime_error("cannot connect");
    EXPECT_EQ(::send(client, request.data(), request.size(), 0), static_cast<ssize_t>(request.size()));
    std::string answer;
    char part[4096];
    for (ssize_t count = 0; (count = ::recv(client, part, sizeof part, 0)) > 0;)
      answer.append(part, static_cast<size_t>(count));
    ::close(client);
    return answer;
  }

 private:
  PageServer server_;
  std::atomic<bool> done_ = false;
  std::thread thread_;
};

TEST(PageServer, AnswersWithThePageAsItIsNow) {
  std::atomic<int> asked = 0;
  const Running server([&] { return ServedPage{"<p>" + std::to_string(++asked) + "</p>", asked < 2 ? 5 : 0}; });
  const std::string first = server.ask("GET / HTTP/1.1\r\nHost: 127.0.0.1:80\r\n\r\n");
  EXPECT_EQ(first.find("HTTP/1.1 200"), 0u) << first;
  EXPECT_NE(first.find("Refresh: 5"), std::string::npos);
  EXPECT_NE(first.find("text/html"), std::string::npos);
  EXPECT_NE(first.find("<p>1</p>"), std::string::npos);
  const std::string second = server.ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_NE(second.find("<p>2</p>"), std::string::npos);
  EXPECT_EQ(second.find("Refresh"), std::string::npos);
  const std::string head = server.ask("HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(head.find("HTTP/1.1 200"), 0u);
  EXPECT_EQ(head.find("<p>"), std::string::npos);
}

TEST(PageServer, RefusesWhatIsNotThePage) {
  const Running server([] { return ServedPage{"page"}; });
  const auto status = [&](const std::string& request) { return server.ask(request).substr(0, 12); };
  EXPECT_EQ(status("GET /etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n"), "HTTP/1.1 404");
  EXPECT_EQ(status("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"), "HTTP/1.1 405");
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n"), "HTTP/1.1 403");
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: localhost.evil.example:80\r\n\r\n"), "HTTP/1.1 403");
  EXPECT_EQ(status("GET / HTTP/1.1\r\n\r\n"), "HTTP/1.1 403");
  for (const char* port : {"", "abc", "80:80", "123456", "-1"})
    EXPECT_EQ(status(std::string("GET / HTTP/1.1\r\nHost: localhost:") + port + "\r\n\r\n"), "HTTP/1.1 403") << port;
  EXPECT_EQ(status("GET /?x=/y HTTP/1.1\r\nHost: localhost\r\n\r\n"), "HTTP/1.1 200") << "a query changes nothing";
  EXPECT_EQ(server.ask("nonsense\r\n\r\n"), "");
  EXPECT_EQ(server.ask("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(20000, 'x') + "\r\n\r\n"), "");
  EXPECT_EQ(status("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"), "HTTP/1.1 200") << "it still answers";
}

TEST(PageServer, WaitsForFileDescriptorsInsteadOfBurningACore) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizers need file descriptors of their own";
#endif
  const Running server([] { return ServedPage{"page"}; });
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = ::dup(STDIN_FILENO);  // the number that the client's socket will get
  ::close(next);
  const rlimit tight{static_cast<rlim_t>(next) + 1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  std::string answer;
  std::thread client([&] { answer = server.ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"); });
  const std::clock_t begun = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(600));
  const double cpu_s = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
  ::setrlimit(RLIMIT_NOFILE, &before);
  client.join();
  EXPECT_LT(cpu_s, 0.2);
  EXPECT_EQ(answer.find("HTTP/1.1 200"), 0u) << answer;
}

TEST(PageServer, SaysWhatWentWrongAndGoesOn) {
  std::atomic<int> asked = 0;
  const Running server([&]() -> ServedPage {
    if (++asked == 1) throw InputError("report", "expected a run; found none; name one.");
    return {"page"};
  });
  const std::string broken = server.ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(broken.find("HTTP/1.1 500"), 0u);
  EXPECT_NE(broken.find("expected a run"), std::string::npos);
  EXPECT_NE(broken.find("Refresh: "), std::string::npos) << "the browser asks again";
  EXPECT_NE(server.ask("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").find("page"), std::string::npos);
  EXPECT_THROW(PageServer(server.port()), InputError) << "the port is taken";
}

}  // namespace
}  // namespace prism
