#include "prism/serving/page_server.h"

#include <fmt/format.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "prism/core/error.h"

namespace prism {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = asio::ip::tcp;
using Request = http::request<http::empty_body>;
using Response = http::response<http::string_body>;

constexpr auto kPatience = std::chrono::seconds(10);            ///< time-out for a slow client
constexpr int kRetrySeconds = 5;                                ///< refresh interval after a page that failed
constexpr auto kAcceptPause = std::chrono::milliseconds(200);   ///< pause after a connection that failed
constexpr auto kStopInterval = std::chrono::milliseconds(200);  ///< interval between calls of `stops`

/// Returns true if a Host header, with or without a port, is a name that only this machine has for itself.
bool is_local(const std::string& host) {
  const size_t colon = host.find(':');
  const std::string name = host.substr(0, colon), port = colon == std::string::npos ? "0" : host.substr(colon + 1);
  const bool is_port = !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  return is_port && (name == "127.0.0.1" || name == "localhost");
}

/// Returns true if a request asks for the page. A query is ignored.
bool is_page(std::string_view target) {
  return target.substr(0, target.find('?')) == "/";
}

Response make_response(http::status status, const std::string& type, std::string body) {
  Response response(status, 11);
  response.set(http::field::content_type, type);
  response.set(http::field::cache_control, "no-store");
  response.keep_alive(false);
  response.body() = std::move(body);
  return response;
}

Response refuse(http::status status, const std::string& sentence) {
  return make_response(status, "text/plain; charset=utf-8", sentence + "\n");
}

Response answer(const Request& request, const std::function<ServedPage()>& page) {
  if (!is_local(std::string(request[http::field::host])))
    return refuse(http::status::forbidden,
                  "expected 127.0.0.1 or localhost as the host; found another; open the address that prism printed.");
  if (request.method() != http::verb::get && request.method() != http::verb::head)
    return refuse(http::status::method_not_allowed, "expected GET or HEAD; found another method; use GET.");
  if (!is_page({request.target().data(), request.target().size()}))
    return refuse(http::status::not_found, "expected /; found another path; open /.");
  try {
    auto served = page();
    auto response = make_response(http::status::ok, "text/html; charset=utf-8", std::move(served.html));
    if (served.refresh_seconds > 0) response.set("Refresh", std::to_string(served.refresh_seconds));
    return response;
  } catch (const std::exception& error) {
    // The cause may be gone at the next reload.
    auto response = refuse(http::status::internal_server_error, error.what());
    response.set("Refresh", std::to_string(kRetrySeconds));
    return response;
  }
}

/// A connection: one request, one answer. It lives as long as one of its handlers.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(Tcp::socket socket, const std::function<ServedPage()>& page) : stream_(std::move(socket)), page_(page) {}

  void start() {
    parser_.header_limit(8192);
    parser_.body_limit(0);
    stream_.expires_after(kPatience);
    http::async_read(stream_, buffer_, parser_,
                     [self = shared_from_this()](beast::error_code error, size_t) { self->reply(error); });
  }

 private:
  void reply(const beast::error_code& error) {
    if (error) return;
    const Request& request = parser_.get();
    response_ = answer(request, page_);
    response_.prepare_payload();
    if (request.method() == http::verb::head) response_.body().clear();
    stream_.expires_after(kPatience);
    http::async_write(stream_, response_, [self = shared_from_this()](beast::error_code, size_t) {
      beast::error_code ignored;
      self->stream_.socket().shutdown(Tcp::socket::shutdown_send, ignored);
    });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_;
  http::request_parser<http::empty_body> parser_;
  Response response_;
  const std::function<ServedPage()>& page_;
};

}  // namespace

struct PageServer::State {
  asio::io_context context{1};
  Tcp::acceptor acceptor{context};
  asio::steady_timer timer{context}, pause{context};

  void accept(const std::function<ServedPage()>& page) {
    acceptor.async_accept([this, &page](beast::error_code error, Tcp::socket socket) {
      if (error == asio::error::operation_aborted) return;
      if (error) return accept_later(page);
      std::make_shared<Session>(std::move(socket), page)->start();
      accept(page);
    });
  }

  /// Waits before accepting again. Without free file descriptors the next connection would fail at once, repeatedly.
  void accept_later(const std::function<ServedPage()>& page) {
    pause.expires_after(kAcceptPause);
    pause.async_wait([this, &page](beast::error_code error) {
      if (!error) accept(page);
    });
  }

  void ask(const std::function<bool()>& stops) {
    timer.expires_after(kStopInterval);
    timer.async_wait([this, &stops](beast::error_code) { stops() ? context.stop() : ask(stops); });
  }
};

PageServer::PageServer(int port) : state_(std::make_unique<State>()) {
  beast::error_code error;
  const Tcp::endpoint place(asio::ip::address_v4::loopback(), static_cast<uint16_t>(port));
  auto& acceptor = state_->acceptor;
  acceptor.open(place.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error) acceptor.bind(place, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  PRISM_CHECK(!error, "serve", "expected port {} of 127.0.0.1 to be free; found: {}; choose another, or 0 for any.",
              port, error.message());
}

PageServer::~PageServer() = default;

int PageServer::port() const {
  return state_->acceptor.local_endpoint().port();
}

void PageServer::run(const std::function<ServedPage()>& page, const std::function<bool()>& stops) {
  state_->accept(page);
  state_->ask(stops);
  state_->context.run();
}

}  // namespace prism
