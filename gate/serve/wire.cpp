// Bytes in and out, plain or with TLS; Boost.Asio's own functions are compiled here, once.
#include <boost/asio/buffer.hpp>
#include <boost/asio/impl/src.hpp>
#include <boost/asio/post.hpp>

#include "gate/serve/session.hpp"

namespace weir::serve {

void Wire::greet(Done done) {
  net::post(socket_.get_executor(), [done = std::move(done)] { done({}); });
}

void Wire::read_some(char* to, std::size_t size, Moved moved) {
  socket_.async_read_some(net::buffer(to, size), std::move(moved));
}

void Wire::write_some(const char* from, std::size_t size, Moved moved) {
  socket_.async_write_some(net::buffer(from, size), std::move(moved));
}

void Wire::shutdown_send(Done done) {
  ErrorCode error;
  socket_.shutdown(net::ip::tcp::socket::shutdown_send, error);
  net::post(socket_.get_executor(), [done = std::move(done), error] { done(error); });
}

}  // namespace weir::serve

#ifdef WEIR_TLS

#include <chrono>
#include <mutex>

#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>

namespace weir::serve {
namespace {

namespace ssl = net::ssl;
using Context = std::shared_ptr<ssl::context>;

class TlsWire final : public Wire {
 public:
  TlsWire(net::ip::tcp::socket socket, Context context)
      : Wire(std::move(socket)), context_(std::move(context)), stream_(socket_, *context_) {}
  [[nodiscard]] bool tls() const override { return true; }
  void greet(Done done) override {
    stream_.async_handshake(ssl::stream_base::server, std::move(done));
  }
  void read_some(char* to, std::size_t size, Moved moved) override {
    stream_.async_read_some(net::buffer(to, size), std::move(moved));
  }
  void write_some(const char* from, std::size_t size, Moved moved) override {
    stream_.async_write_some(net::buffer(from, size), std::move(moved));
  }
  void shutdown_send(Done done) override {
    stream_.async_shutdown([this, done = std::move(done)](ErrorCode error) {
      ErrorCode ignored;
      socket_.shutdown(net::ip::tcp::socket::shutdown_send, ignored);
      done(error);
    });
  }

 private:
  Context context_;  // the connection keeps it, also if the files change later
  ssl::stream<net::ip::tcp::socket&> stream_;
};

// File identity, size and time of change; differs after a file was replaced or written.
using Stamp = std::vector<std::int64_t>;

// Returns inode, size and time of change of the certificate and key files, to see whether they
// changed. A missing file counts as zeros.
Stamp read_stamp(const Tls& files) {
  Stamp stamp;
  for (const std::string* file : {&files.certificate_file, &files.key_file}) {
    struct stat status {};
    if (stat(file->c_str(), &status) != 0) status = {};
#ifdef __APPLE__
    const timespec changed = status.st_mtimespec;
#else
    const timespec changed = status.st_mtim;
#endif
    stamp.insert(stamp.end(), {static_cast<std::int64_t>(status.st_ino), status.st_size,
                               changed.tv_sec, changed.tv_nsec});
  }
  return stamp;
}

// Returns the newest reason in OpenSSL's error queue, and empties the queue.
std::string openssl_error() {
  std::string reason_text = "unknown";
  while (const unsigned long error = ERR_get_error()) {
    const char* reason = ERR_reason_error_string(error);
    if (reason != nullptr) reason_text = reason;
  }
  return reason_text;
}

// Chooses HTTP/1.1 from the protocols that the client offers (ALPN).
int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_size,
                    const unsigned char* offered, unsigned offered_size, void*) {
  static constexpr unsigned char k_protocols[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, k_protocols, sizeof k_protocols, offered,
                            offered_size) != OPENSSL_NPN_NEGOTIATED) {
    return SSL_TLSEXT_ERR_NOACK;
  }
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

// Makes OpenSSL fail on an encrypted key instead of asking for its password.
int no_password(char*, int, int, void*) { return -1; }

// Loads certificate and key into a TLS context: TLS 1.2 or newer, without renegotiation. Fails if a
// file is no PEM or they don't match.
Result<Context> load_context(const Tls& files) {
  ERR_clear_error();
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* raw = context->native_handle();
  SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION);
  SSL_CTX_set_options(
      raw, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  // All ciphers of TLS 1.3 are sound. Idle connections keep no buffers.
  SSL_CTX_set_cipher_list(raw, "ECDHE+AESGCM:ECDHE+CHACHA20");
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_default_passwd_cb(raw, no_password);
  SSL_CTX_set_alpn_select_cb(raw, choose_protocol, nullptr);
  if (SSL_CTX_use_certificate_chain_file(raw, files.certificate_file.c_str()) != 1) {
    return fail(Code::config, "{}: no certificate in PEM: {}", files.certificate_file,
                openssl_error());
  }
  if (SSL_CTX_use_PrivateKey_file(raw, files.key_file.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(raw) != 1) {
    return fail(Code::config, "{}: no key in PEM (without a password) to the certificate\n{}: {}",
                files.key_file, files.certificate_file, openssl_error());
  }
  return context;
}

// The current certificate and key, read again when their files change. Thread-safe.
class TlsCertificate {
 public:
  TlsCertificate(Tls files, Context context, Stamp stamp)
      : files_(std::move(files)),
        context_(std::move(context)),
        stamp_(stamp),
        tried_stamp_(std::move(stamp)) {}

  // Returns the newest context. Keeps the old one, with a warning, if new files are invalid.
  Context current() {
    const std::lock_guard lock(mutex_);
    const auto now = SteadyClock::now();
    if (now - checked_at_ < std::chrono::duration<double>(files_.look_again_seconds))
      return context_;
    checked_at_ = now;
    const auto stamp = read_stamp(files_);
    if (stamp == stamp_) return context_;
    auto loaded = load_context(files_);
    if (loaded) {
      context_ = std::move(*loaded);
      stamp_ = stamp;
      spdlog::info("TLS: the certificate of {} is in use from now on", files_.certificate_file);
    } else if (stamp != tried_stamp_) {
      spdlog::warn("TLS: the certificate stays what it was: {}", loaded.error().message);
    }
    tried_stamp_ = stamp;
    return context_;
  }

 private:
  using SteadyClock = std::chrono::steady_clock;

  const Tls files_;
  std::mutex mutex_;
  Context context_;  // all under mutex_
  Stamp stamp_;      // the files' stamp when context_ was loaded
  Stamp tried_stamp_;
  SteadyClock::time_point checked_at_{};
};

}  // namespace

Result<MakeWire> tls_wires(const Tls& files) {
  const auto stamp = read_stamp(files);  // taken first, so that later changes are noticed
  WEIR_TRY(Context context, load_context(files));
  const auto certificate = std::make_shared<TlsCertificate>(files, std::move(context), stamp);
  return [certificate](net::ip::tcp::socket socket) -> std::unique_ptr<Wire> {
    return std::make_unique<TlsWire>(std::move(socket), certificate->current());
  };
}

}  // namespace weir::serve

#else

namespace weir::serve {

Result<MakeWire> tls_wires(const Tls&) {
  return fail(Code::unavailable,
              "this weir was built without TLS (WEIR_TLS): leave the certificate out and let a\n"
              "proxy in front of it end TLS");
}

}  // namespace weir::serve

#endif
