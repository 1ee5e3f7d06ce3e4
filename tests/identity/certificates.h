// Certificates, made at test time.
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace gemmd {

// In PEM.
struct KeyedCertificate {
  std::string certificate;
  std::string key;
};

struct CertificateSpec {
  std::string common_name;
  std::string second_common_name;               // empty: none
  std::string dns_name;                         // empty: none
  unsigned rsa_bits = 0;                        // 0: a P-256 key
  absl::Duration valid_from = -absl::Hours(1);  // from now
  absl::Duration valid_to = absl::Hours(24);
};

// A certificate authority of its own.
class TestCa {
 public:
  TestCa();
  ~TestCa();

  const std::string& certificate() const;
  KeyedCertificate Issue(const CertificateSpec& spec) const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

// Writes beside the file and renames it, so that nobody sees half of it.
void WriteFileAtOnce(const std::string& path, absl::string_view text);

}  // namespace gemmd
