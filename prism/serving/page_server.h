// Serves one page over HTTP, for a browser on the same machine.
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
  int refresh_seconds = 0;  ///< interval at which the browser reloads the page; 0 means never
};

/// Answers GET and HEAD of / on 127.0.0.1, one request at a time. Answers 404 for other paths, 405 for other methods,
/// and 403 for other host names (a page from elsewhere could point its own name here).
class PageServer {
 public:
  /// @param port  0 chooses a free one. @throws InputError if it is taken.
  explicit PageServer(int port);
  ~PageServer();
  PageServer(const PageServer&) = delete;
  PageServer& operator=(const PageServer&) = delete;

  int port() const;
  /// Serves until `stops` returns true; it is called a few times a second. If `page` throws, answers the message with
  /// status 500.
  void run(const std::function<ServedPage()>& page, const std::function<bool()>& stops);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace prism
