#pragma once

// The certificates that servers are checked with.

#include <array>
#include <span>
#include <string>

#include "smd/storage/s3/options.h"

namespace smd::storage {

// Where distributions keep the certificates that all programs trust. libcurl knows the place of the
// distribution that it was built on, and a wheel carries it to others.
inline constexpr std::array<const char*, 6> kUsualCaFiles = {
    "/etc/ssl/certs/ca-certificates.crt",                 // Debian, Ubuntu, Arch
    "/etc/pki/tls/certs/ca-bundle.crt",                   // Fedora, Amazon Linux
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  // Red Hat
    "/etc/ssl/ca-bundle.pem",                             // openSUSE
    "/var/lib/ca-certificates/ca-bundle.pem",             // openSUSE
    "/etc/ssl/cert.pem",                                  // Alpine
};

// The file that AWS_CA_BUNDLE names, else the one that SSL_CERT_FILE names. Neither is set: empty
// if `built_in`, which libcurl takes by itself, can be read; else the first of `usual` that can be.
// Empty: libcurl decides.
std::string find_ca_file(const Variables& variables, const std::string& built_in,
                         std::span<const char* const> usual = kUsualCaFiles);

// The file that libcurl takes when it is told none; empty: it has none.
std::string built_in_ca_file();

}  // namespace smd::storage
