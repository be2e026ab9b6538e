#include <stddef.h>
#include <stdint.h>

/* The dictionary of RFC 7932. libbrotlicommon exports it for libbrotlidec and libbrotlienc, which share it; Debian's
 * headers leave it out. Source: c/common/dictionary.h of brotli 1.0 and later. */
typedef struct {
    uint8_t size_bits_by_length[32];
    uint32_t offsets_by_length[32];
    size_t data_size;
    const uint8_t *data;
} BrotliDictionary;

const BrotliDictionary *BrotliGetDictionary(void);
