#include <openssl/evp.h>
#include <openssl/provider.h>
