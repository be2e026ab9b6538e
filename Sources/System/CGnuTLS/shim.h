#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

/* GNUTLS_CURVE_TO_BITS is a function-like macro, which Swift does not import. */
static inline unsigned int shim_p256_bits(void) { return GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1); }
