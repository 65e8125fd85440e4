// Boost.Asio's own functions, compiled once.
#include <boost/asio/impl/src.hpp>
#ifdef WEIR_TLS
#include <boost/asio/ssl/impl/src.hpp>
#endif
