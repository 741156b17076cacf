#include "nri/http_server.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nri/sockets.h"
#include "tests/unit/temporary_directory.h"

namespace podqos::nri {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kGet = "GET /page HTTP/1.1\r\nHost: x\r\n\r\n";

/// Somebody who asks; it never waits.
class Client {
 public:
  explicit Client(const std::string& path) : socket_(connect_to(path).value_or(sys::UniqueFd{})) {}
  explicit Client(sys::UniqueFd socket) : socket_(std::move(socket)) {}
  [[nodiscard]] bool connected() const { return socket_.valid(); }
  [[nodiscard]] bool send(std::string_view text) {
    return ::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(text.size());
  }
  /// Reads what there is. false: the other end has closed the connection.
  bool receive() {
    std::array<char, 65536> piece;
    ssize_t size = 0;
    while ((size = ::read(socket_.get(), piece.data(), piece.size())) > 0)
      text_.append(piece.data(), static_cast<std::size_t>(size));
    return size < 0 && errno == EAGAIN;
  }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  sys::UniqueFd socket_;
  std::string text_;
};

class HttpServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = listen_at(core::UnixSocket{path_});
    ASSERT_TRUE(opened) << opened.error().message;
    listener_ = std::move(*opened);
    server_.emplace(listener_.get(), 10s);
  }

  /// One turn of a loop that has nothing else to do, and waits for nothing.
  std::size_t turn() {
    std::vector<pollfd> polled;
    server_->add_to(polled);
    EXPECT_GE(::poll(polled.data(), polled.size(), 0), 0);
    const int before = asked_;
    const auto pages = [this](std::string_view path) {
      ++asked_;
      return page_for(path);
    };
    server_->serve(polled, pages, now_);
    EXPECT_LE(asked_, before + 1);
    return polled.size() - 1;
  }
  void turn(int times) {
    for (int i = 0; i < times; ++i)
      turn();
  }
  HttpAnswer page_for(std::string_view path) const {
    if (path == "/page") return {.body = body_};
    return {.status = kHttpNotFound, .body = "none\n"};
  }
  /// Has the client got the page?
  static void expect_page(Client& client) {
    client.receive();
    EXPECT_THAT(client.text(), EndsWith("hello\n"));
  }
  /// Clients that have asked for the page.
  [[nodiscard]] std::vector<Client> clients(std::size_t number) const {
    std::vector<Client> all;
    for (std::size_t i = 0; i < number; ++i) {
      all.emplace_back(path_);
      EXPECT_TRUE(all.back().send(kGet));
    }
    return all;
  }
  /// The answer to one request.
  std::string ask(std::string_view text) {
    Client client{path_};
    EXPECT_TRUE(client.send(text));
    for (int i = 0; i < 100 && client.receive(); ++i)
      turn();
    return client.text();
  }

  TemporaryDirectory temporary_;
  std::string path_ = temporary_.path("http.sock");
  sys::UniqueFd listener_;
  std::optional<HttpServer> server_;
  std::string body_ = "hello\n";
  int asked_ = 0;
  steady_clock::time_point now_{1h};
};

TEST_F(HttpServerTest, AnswersAndCloses) {
  EXPECT_THAT(ask(kGet), Eq("HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
                            "Content-Length: 6\r\nConnection: close\r\n\r\nhello\n"));
  turn();
  EXPECT_EQ(turn(), 0U);
}

TEST_F(HttpServerTest, LeavesTheBodyOutForHead) {
  EXPECT_THAT(ask("HEAD /page HTTP/1.1\r\nHost: x\r\n\r\n"),
              AllOf(HasSubstr("Content-Length: 6\r\n"), EndsWith("\r\n\r\n")));
}

TEST_F(HttpServerTest, SaysWhatIsWrong) {
  EXPECT_THAT(ask("GET /other HTTP/1.1\r\nHost: x\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 404 Not Found\r\n"), EndsWith("\r\n\r\nnone\n")));
  EXPECT_THAT(ask("PUT /page HTTP/1.1\r\nHost: x\r\n\r\n"),
              AllOf(StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"),
                    HasSubstr("\r\nAllow: GET, HEAD\r\n")));
  EXPECT_THAT(ask("GET page HTTP/1.1\r\n\r\n"), StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  // More than a request may have, and more than is read at once.
  EXPECT_THAT(ask("GET /page HTTP/1.1\r\nX: " + std::string(4096, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_THAT(ask(std::string(5000, '\r')), StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_EQ(asked_, 1);
}

TEST_F(HttpServerTest, AnswersTheFirstOfManyRequests) {
  const std::string answer = ask(std::string{kGet} + std::string{kGet} + std::string{kGet});
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200 OK\r\n"), EndsWith("\r\n\r\nhello\n")));
  EXPECT_EQ(asked_, 1);
}

TEST_F(HttpServerTest, TakesARequestByteByByte) {
  Client client{path_};
  for (const char byte : kGet) {
    ASSERT_TRUE(client.send({&byte, 1}));
    turn(2);
  }
  turn(3);
  expect_page(client);
}

TEST_F(HttpServerTest, AnswersOnceATurn) {
  auto five = clients(5);
  turn();  // takes them in; turn() itself holds that no two are answered in one
  for (int i = 0; i < 5; ++i) {
    turn();
    EXPECT_EQ(asked_, i + 1);
  }
  std::ranges::for_each(five, expect_page);
}

TEST_F(HttpServerTest, AnswersBesideClientsThatNeverRead) {
  body_ = std::string(4U << 20U, 'x');
  std::vector<Client> deaf;
  const auto probe = [&] {
    const std::string answer = ask("GET /health HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(answer, EndsWith("none\n")) << "beside " << deaf.size() << " clients";
  };
  for (int i = 0; i < 36; ++i) {
    deaf.emplace_back(path_);
    ASSERT_TRUE(deaf.back().connected() && deaf.back().send(kGet));
    // The last twelve come at once.
    if (i < 24 || i == 35) probe();
  }
  Client reader{path_};
  ASSERT_TRUE(reader.send(kGet));
  for (int i = 0; i < 1000 && reader.receive(); ++i)
    turn();
  EXPECT_EQ(reader.text().size(), reader.text().find("\r\n\r\n") + 4 + body_.size());
  EXPECT_LE(turn(), HttpServer::kMaxUnread);
}

TEST_F(HttpServerTest, WaitsForNoConnectionThatSendsNoRequest) {
  std::vector<Client> silent;
  for (std::size_t i = 0; i < HttpServer::kMaxConnections + 4; ++i) {
    silent.emplace_back(path_);
    if (i % 2 == 0) {
      ASSERT_TRUE(silent.back().send("GET /page HT"));
    }
    turn();
  }
  EXPECT_EQ(turn(), HttpServer::kMaxConnections);
  EXPECT_FALSE(silent.front().receive());
  EXPECT_TRUE(silent.back().receive());
  EXPECT_THAT(ask(kGet), EndsWith("hello\n"));
  // A queue of them waits in the kernel.
  for (int i = 0; i < 15; ++i)
    silent.emplace_back(path_);
  EXPECT_THAT(ask(kGet), EndsWith("hello\n"));
}

TEST_F(HttpServerTest, LetsNoRequestThatIsCompleteGiveWay) {
  auto many = clients(2 * HttpServer::kMaxConnections);
  turn(2 * HttpServer::kMaxConnections + 1);
  for (Client& client : many) {
    client.receive();
    turn(3);
    expect_page(client);
  }
}

/// The same on TCP, where other pods are at other addresses than a kubelet.
class HttpServerOnTcpTest : public HttpServerTest {
 protected:
  void SetUp() override {
    auto opened = listen_at(core::TcpPort{.host = "127.0.0.1", .port = 0});
    ASSERT_TRUE(opened) << opened.error().message;
    listener_ = std::move(*opened);
    server_.emplace(listener_.get(), 10s);
    socklen_t size = sizeof at_;
    ASSERT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&at_), &size), 0);
  }
  /// A client at 127.0.0.`number`.
  [[nodiscard]] Client client_at(std::uint32_t number) const {
    sys::UniqueFd socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_in own{};
    own.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl((127U << 24U) + number);
    EXPECT_EQ(::bind(socket.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own), 0);
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&at_), sizeof at_), 0);
    EXPECT_EQ(::fcntl(socket.get(), F_SETFL, O_NONBLOCK), 0);
    return Client{std::move(socket)};
  }
  /// Three probes beside connections that are never done with their request, and come again when
  /// they are closed; each probe says what it wants only after as many more of them.
  void expect_answers(std::uint32_t addresses, std::uint32_t connections) {
    std::vector<Client> others;
    const auto come = [&](std::uint32_t i) {
      Client other = client_at(2 + i % addresses);
      EXPECT_TRUE(i % 3 == 0 || other.send(i % 3 == 1 ? "GET /page HTTP/1.1\r\n" : "G"));
      turn();
      return other;
    };
    for (std::uint32_t i = 0; i < connections; ++i)
      others.push_back(come(i));
    for (int probe = 0; probe < 3; ++probe) {
      Client client = client_at(1);
      turn();
      for (std::uint32_t i = 0; i < connections; ++i) {
        if (!others[i].receive()) others[i] = come(i);
      }
      ASSERT_TRUE(client.send(kGet));
      while (client.receive())
        turn();
      ASSERT_THAT(client.text(), EndsWith("hello\n")) << "probe " << probe;
    }
  }

  sockaddr_in at_{};
};

TEST_F(HttpServerOnTcpTest, AnswersBesideOneAddressThatAsksForNothing) {
  expect_answers(1, 300);
}

TEST_F(HttpServerOnTcpTest, AnswersBesideManyAddressesThatAskForNothing) {
  expect_answers(120, 360);
}

TEST_F(HttpServerOnTcpTest, TakesAllThatComeAtOnce) {
  std::vector<Client> others;
  for (std::uint32_t i = 0; i < 400; ++i)
    others.push_back(client_at(2));
  Client client = client_at(1);
  ASSERT_TRUE(client.send(kGet));
  while (client.receive())
    turn();
  expect_page(client);
  EXPECT_EQ(turn(), HttpServer::kMaxConnections);
}

/// A scrape that takes time keeps its connection, whatever another address leaves unread.
TEST_F(HttpServerOnTcpTest, FinishesAnAnswerBesideAnAddressThatNeverReads) {
  body_ = std::string(16U << 20U, 'x');
  Client reader = client_at(1);
  ASSERT_TRUE(reader.send(kGet));
  turn(2);
  std::vector<Client> deaf;
  for (int i = 0; i < 20; ++i) {
    deaf.push_back(client_at(2));
    ASSERT_TRUE(deaf.back().send(kGet));
    turn(2);
  }
  EXPECT_LE(turn(), HttpServer::kMaxUnread);
  while (reader.receive())
    turn();
  EXPECT_EQ(reader.text().size(), reader.text().find("\r\n\r\n") + 4 + body_.size());
}

TEST_F(HttpServerTest, EndsConnectionsInTime) {
  server_.emplace(listener_.get(), 50ms);
  body_ = std::string(4U << 20U, 'x');
  Client silent{path_};
  Client slow{path_};
  Client deaf{path_};
  ASSERT_TRUE(slow.send("GET /page"));
  ASSERT_TRUE(deaf.send(kGet));
  turn(5);
  EXPECT_EQ(server_->next_deadline(), now_ + 50ms);
  now_ += 49ms;
  ASSERT_TRUE(slow.send("x"));  // each byte a sign of life, and of no use
  turn();
  EXPECT_EQ(turn(), 3U);
  now_ += 1ms;
  turn();
  EXPECT_FALSE(server_->next_deadline());
  EXPECT_EQ(turn(), 0U);
  EXPECT_FALSE(silent.receive());
  EXPECT_FALSE(slow.receive());
  EXPECT_FALSE(deaf.receive());
  EXPECT_LT(deaf.text().size(), body_.size());
}

TEST_F(HttpServerTest, OutlivesThousandsOfConnections) {
  for (int i = 0; i < 5000; ++i) {
    Client client{path_};
    if (!client.connected()) {
      turn();
      continue;
    }
    // One in three ends in the middle of its request, one in three without one.
    if (i % 3 == 0) static_cast<void>(client.send("GET /pa"));
    if (i % 3 == 1) static_cast<void>(client.send(kGet));
    if (i % 7 == 0) turn();
  }
  turn(5000);
  EXPECT_EQ(turn(), 0U);
  EXPECT_THAT(ask(kGet), EndsWith("hello\n"));
}

TEST_F(HttpServerTest, DoesNotSpinWithoutDescriptors) {
  Client client{path_};
  ASSERT_TRUE(client.send(kGet));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 3, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  turn();
  std::vector<pollfd> polled;
  server_->add_to(polled);
  const auto deadline = server_->next_deadline();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(polled.front().fd, -1);
  ASSERT_TRUE(deadline);
  EXPECT_GT(*deadline, now_);
  now_ = *deadline;
  turn(5);
  expect_page(client);
}

TEST(ParseHttpRequest, TakesAPath) {
  for (const auto& [text, path] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "/metrics"},
           {"HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "/healthz"},
           {"GET /metrics?name=a HTTP/1.1\r\nHost: x\r\n\r\n", "/metrics"},
           {"GET /metrics?at=http://h/x HTTP/1.1\r\n\r\n", "/metrics"},
           {"GET /metrics HTTP/1.0\r\n\r\n", "/metrics"},
           {"GET / HTTP/1.1\nHost: x\n\n", "/"},  // line feeds only
           {"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", "/"},
           {"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n", "/"}}) {
    const HttpRequest request = parse_http_request(text);
    EXPECT_EQ(request.status, kHttpOk) << text;
    EXPECT_EQ(request.path, path) << text;
    EXPECT_EQ(request.head_only, text.starts_with("HEAD")) << text;
  }
}

void expect_refused(std::string_view status, const std::vector<std::string_view>& texts) {
  for (const std::string_view text : texts) {
    const HttpRequest request = parse_http_request(text);
    EXPECT_EQ(request.status, status) << text;
    EXPECT_EQ(request.path, "") << text;
    EXPECT_FALSE(request.head_only) << text;
  }
}

TEST(ParseHttpRequest, AllowsNoOtherMethod) {
  expect_refused(
      kHttpMethodNotAllowed,
      {"POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
       "PATCH /metrics HTTP/1.1\r\nHost: x\r\n\r\n", "CONNECT h:1 HTTP/1.1\r\nHost: x\r\n\r\n",
       "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "BREW / HTTP/1.1\r\nHost: x\r\n\r\n",
       "get / HTTP/1.1\r\nHost: x\r\n\r\n"});
}

TEST(ParseHttpRequest, RefusesWhatIsNoRequestForAPathByHttp1) {
  expect_refused(kHttpBadRequest, {"GET metrics HTTP/1.1\r\nHost: x\r\n\r\n",
                                   "GET * HTTP/1.1\r\nHost: x\r\n\r\n",
                                   "GET http://h:9464/readyz HTTP/1.1\r\nHost: h:9464\r\n\r\n",
                                   "GET / FTP/1.1\r\nHost: x\r\n\r\n",
                                   "GET\r\n\r\n",
                                   "GET / HTTP/2.0\r\nHost: x\r\n\r\n",
                                   "GET /\r\n\r\n",
                                   "\r\n\r\n",
                                   "",
                                   {"\x16\x03\x01\x02\x00\x01", 6},     // TLS
                                   "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",  // prior knowledge of HTTP/2
                                   {"\0\0\0\1\0\0\0\x10", 8}});         // ttrpc
}

}  // namespace
}  // namespace podqos::nri
