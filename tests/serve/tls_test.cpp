// Tests TLS, with certificates that the tests make.
#ifdef WEIR_TLS

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/serve/echo.hpp"
#include "tests/serve/raw_client.hpp"
#include "tests/support/eventually.hpp"

namespace weir::tests {
namespace tls_test {

template <class T>
using Owned = std::unique_ptr<T, void (*)(T*)>;

std::string pem(const std::function<int(BIO*)>& write) {
  const Owned<BIO> bio(BIO_new(BIO_s_mem()), BIO_free_all);
  if (write(bio.get()) != 1) throw std::runtime_error("no PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

struct Pair {
  std::string certificate, key, locked_key;
};

// Generates a self-signed certificate for `name`.
Pair make_pair_of(const std::string& name) {
  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const Owned<X509> x509(X509_new(), X509_free);
  ASN1_INTEGER_set(X509_get_serialNumber(x509.get()), 1);
  X509_gmtime_adj(X509_getm_notBefore(x509.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(x509.get()), 3600);
  X509_set_pubkey(x509.get(), key.get());
  X509_NAME* subject = X509_get_subject_name(x509.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(x509.get(), subject);
  X509_sign(x509.get(), key.get(), EVP_sha256());
  unsigned char password[] = "secret";
  return {pem([&](BIO* to) { return PEM_write_bio_X509(to, x509.get()); }), pem([&](BIO* to) {
            return PEM_write_bio_PrivateKey(to, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          }),
          pem([&](BIO* to) {
            return PEM_write_bio_PrivateKey(to, key.get(), EVP_aes_256_cbc(), password, 6, nullptr,
                                            nullptr);
          })};
}

class TlsFiles : public ::testing::Test {
 protected:
  TlsFiles() {
    char name[] = "/tmp/weir-tls-XXXXXX";
    folder_ = mkdtemp(name);
    files = {(folder_ / "certificate.pem").string(), (folder_ / "key.pem").string()};
  }
  ~TlsFiles() override { std::filesystem::remove_all(folder_); }

  // Sets the modification time a minute later each time, as file systems have a coarse clock.
  void write(const std::string& certificate, const std::string& key) {
    using namespace std::filesystem;
    std::ofstream(files.certificate_file) << certificate;
    std::ofstream(files.key_file) << key;
    written_ += std::chrono::minutes(1);
    for (const std::string& file : {files.certificate_file, files.key_file})
      last_write_time(file, file_time_type::clock::now() + written_);
  }
  [[nodiscard]] serve::ServerOptions options() const {
    serve::ServerOptions options = Served::local();
    options.tls = files;
    return options;
  }

  serve::Tls files;

 private:
  std::filesystem::path folder_;
  std::chrono::minutes written_{0};
};

class TlsClient {
 public:
  explicit TlsClient(std::uint16_t port, int version = 0)
      : context_(SSL_CTX_new(TLS_client_method()), SSL_CTX_free) {
    if (version != 0) {
      SSL_CTX_set_security_level(context_.get(), 0);  // otherwise the client would not offer 1.1
      SSL_CTX_set_min_proto_version(context_.get(), version);
      SSL_CTX_set_max_proto_version(context_.get(), version);
    }
    const unsigned char offered[] = "\x02h2\x08http/1.1";
    SSL_CTX_set_alpn_protos(context_.get(), offered, sizeof offered - 1);
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval patience{120, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), fd_);
    connected = connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 &&
                SSL_connect(ssl_.get()) == 1;
  }
  ~TlsClient() {
    ssl_.reset();
    close(fd_);
  }
  TlsClient(const TlsClient&) = delete;
  TlsClient& operator=(const TlsClient&) = delete;

  // Sends `bytes` and returns all bytes until the peer closes.
  std::string ask(const std::string& bytes) {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const int size =
          SSL_write(ssl_.get(), bytes.data() + sent,
                    static_cast<int>(std::min<std::size_t>(bytes.size() - sent, 100000)));
      if (size <= 0) break;
      sent += static_cast<std::size_t>(size);
    }
    std::string all;
    char part[64 << 10];
    for (int got = 0; (got = SSL_read(ssl_.get(), part, sizeof part)) > 0;) {
      all.append(part, static_cast<std::size_t>(got));
    }
    clean_end = SSL_get_shutdown(ssl_.get()) == SSL_RECEIVED_SHUTDOWN;
    return all;
  }
  [[nodiscard]] std::string version() const { return SSL_get_version(ssl_.get()); }
  [[nodiscard]] std::string protocol() const {
    const unsigned char* name = nullptr;
    unsigned size = 0;
    SSL_get0_alpn_selected(ssl_.get(), &name, &size);
    return size == 0 ? "" : std::string(reinterpret_cast<const char*>(name), size);
  }
  [[nodiscard]] std::string server_name() const {
    const Owned<X509> x509(SSL_get1_peer_certificate(ssl_.get()), X509_free);
    char name[100] = "";
    if (x509)
      X509_NAME_get_text_by_NID(X509_get_subject_name(x509.get()), NID_commonName, name,
                                sizeof name);
    return name;
  }

  bool connected = false, clean_end = false;

 private:
  Owned<SSL_CTX> context_;
  Owned<SSL> ssl_{nullptr, SSL_free};
  int fd_ = -1;
};

const std::string k_last = "GET /a HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

TEST_F(TlsFiles, AreWhatAServerSpeaksWith) {
  const Pair pair = make_pair_of("first");
  write(pair.certificate, pair.key);
  Served served(options());
  for (const auto& [version, name] :
       {std::pair(TLS1_2_VERSION, "TLSv1.2"), std::pair(TLS1_3_VERSION, "TLSv1.3")}) {
    TlsClient client(served.port(), version);
    ASSERT_TRUE(client.connected) << name;
    EXPECT_EQ(client.version(), name);
    EXPECT_EQ(client.protocol(), "http/1.1");
    EXPECT_EQ(client.server_name(), "first");
    const std::string answer = client.ask("GET /b HTTP/1.1\r\nHost: h\r\n\r\n" + k_last);
    EXPECT_NE(answer.find("\"path\":\"/b\""), std::string::npos) << answer;
    EXPECT_NE(answer.find("\"path\":\"/a\""), std::string::npos) << answer;
    EXPECT_NE(answer.find("\"secure\":true"), std::string::npos) << answer;
    EXPECT_TRUE(client.clean_end) << name;
  }
  EXPECT_FALSE(TlsClient(served.port(), TLS1_1_VERSION).connected);
}

TEST_F(TlsFiles, CarryMuchBothWays) {
  const Pair pair = make_pair_of("first");
  write(pair.certificate, pair.key);
  Served served(options());
  served.echo.max_body_bytes = 4 << 20;
  served.echo.big = std::make_shared<const std::string>(8 << 20, 'b');
  TlsClient client(served.port());
  const std::string body(4 << 20, 'x');
  const std::string answer =
      client.ask("POST /a HTTP/1.1\r\nHost: h\r\nContent-Length: " + std::to_string(body.size()) +
                 "\r\n\r\n" + body + "GET /big HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_NE(answer.find(body), std::string::npos);
  EXPECT_NE(answer.find(*served.echo.big), std::string::npos);
}

TEST_F(TlsFiles, LetARefusalBeHeardByWhoStillSends) {
  const Pair pair = make_pair_of("first");
  write(pair.certificate, pair.key);
  Served served(options());
  TlsClient client(served.port());
  const std::string answer =
      client.ask("POST /refused HTTP/1.1\r\nHost: h\r\nContent-Length: 900000\r\n\r\n" +
                 std::string(900000, 'a'));
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 403 ")) << answer;
}

TEST_F(TlsFiles, AreNotForWhoSpeaksNone) {
  const Pair pair = make_pair_of("first");
  write(pair.certificate, pair.key);
  serve::ServerOptions limited = options();
  limited.limits.header_seconds = 0.3;
  Served served(limited);
  RawClient plain(served.port());
  plain.send(k_last);
  EXPECT_EQ(plain.rest().find("HTTP/"), std::string::npos);
  RawClient silent(served.port());
  EXPECT_TRUE(silent.closed());
  RawClient slow(served.port());  // the beginning of a hello
  slow.send(std::string("\x16\x03\x01\x02", 4));
  EXPECT_TRUE(slow.closed());
  // On a busy machine, the first attempts may be too late.
  EXPECT_TRUE(eventually([&] {
    TlsClient client(served.port());
    return client.connected && client.ask(k_last).starts_with("HTTP/1.1 200 ");
  }));
}

TEST_F(TlsFiles, AreReadAgainWhenTheyChange) {
  const Pair first = make_pair_of("first"), second = make_pair_of("second");
  write(first.certificate, first.key);
  files.look_again_seconds = 0;  // at each connection
  Served served(options());
  const auto name_now = [&] { return TlsClient(served.port()).server_name(); };
  EXPECT_EQ(name_now(), "first");
  write(second.certificate, first.key);  // certificate and key do not match
  EXPECT_EQ(name_now(), "first");
  write(second.certificate, second.key);
  EXPECT_EQ(name_now(), "second");
  std::filesystem::remove(files.key_file);
  EXPECT_EQ(name_now(), "second");
}

TEST_F(TlsFiles, AreLookedAtNoMoreOftenThanWanted) {
  const Pair first = make_pair_of("first"), second = make_pair_of("second");
  write(first.certificate, first.key);
  files.look_again_seconds = 1e6;
  Served served(options());
  const auto name_now = [&] { return TlsClient(served.port()).server_name(); };
  EXPECT_EQ(name_now(), "first");
  write(second.certificate, second.key);
  EXPECT_EQ(name_now(), "first");
}

TEST_F(TlsFiles, ThatAreNoGoodAreTold) {
  const Pair pair = make_pair_of("first"), second = make_pair_of("other");
  Echo echo;
  const std::pair<std::string, std::string> cases[] = {{"", ""},
                                                       {"text", "text"},
                                                       {pair.certificate, ""},
                                                       {pair.certificate, "text"},
                                                       {pair.certificate, second.key},
                                                       {pair.key, pair.certificate},
                                                       {pair.certificate, pair.locked_key}};
  for (const auto& [certificate, key] : cases) {
    write(certificate, key);
    const auto server = serve::Server::listen(options(), echo);
    ASSERT_FALSE(server) << certificate << key;
    EXPECT_EQ(server.error().code, Code::config);
    EXPECT_NE(server.error().message.find(".pem"), std::string::npos) << server.error().message;
  }
  std::filesystem::remove(files.certificate_file);
  EXPECT_EQ(serve::Server::listen(options(), echo).error().code, Code::config);
}

}  // namespace tls_test
}  // namespace weir::tests

#else

#include <gtest/gtest.h>

#include "tests/serve/echo.hpp"

namespace weir::tests {
namespace tls_test {

TEST(Tls, IsToldToBeMissing) {
  Echo echo;
  serve::ServerOptions options = Served::local();
  options.tls = serve::Tls{"certificate.pem", "key.pem"};
  const auto server = serve::Server::listen(options, echo);
  ASSERT_FALSE(server);
  EXPECT_EQ(server.error().code, Code::unavailable);
  EXPECT_NE(server.error().message.find("built without TLS"), std::string::npos);
}

}  // namespace tls_test
}  // namespace weir::tests

#endif
