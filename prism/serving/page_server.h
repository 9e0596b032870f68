// One page over HTTP, for a browser on the same machine.
//
//   PageServer server(8080);
//   say("http://127.0.0.1:{}\n", server.port());
//   server.run([&] { return ServedPage{.html = render(), .refresh_seconds = 5}; }, [] { return stop_signal() != 0; });
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace prism {

struct ServedPage {
  std::string html;
  int refresh_seconds = 0;  ///< the browser asks again after so many; 0: it does not
};

/// Answers GET and HEAD of / on 127.0.0.1, one request at a time; 404, 405 and 403 for other paths, other methods and
/// other hosts' names (a page from elsewhere whose name was made to lead here).
class PageServer {
 public:
  /// @param port  0: any that is free. @throws InputError if it is taken.
  explicit PageServer(int port);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  int port() const;
  /// Until `stops`, which is asked a few times a second. What `page` throws is answered as a sentence with status 500.
  void run(const std::function<ServedPage()>& page, const std::function<bool()>& stops);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace prism
