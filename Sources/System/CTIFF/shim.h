#include <tiffio.h>

/* TIFFGetField is variadic, which Swift does not import. */

/* A number that has 32 bits in the library; 0 where there is none. */
static inline uint32_t shim_tiff_number(TIFF *tiff, uint32_t tag) {
    uint32_t value = 0;
    return TIFFGetFieldDefaulted(tiff, tag, &value) == 1 ? value : 0;
}

/* The compression scheme, which has 16 bits in the library. */
static inline uint16_t shim_tiff_compression(TIFF *tiff) {
    uint16_t scheme = COMPRESSION_NONE;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_COMPRESSION, &scheme);
    return scheme;
}

/* How samples are stored: SAMPLEFORMAT_UINT, SAMPLEFORMAT_INT and others. */
static inline uint16_t shim_tiff_sample_format(TIFF *tiff) {
    uint16_t format = SAMPLEFORMAT_UINT;
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLEFORMAT, &format);
    return format;
}

/* The ICC profile, which belongs to the library, and its length; null where there is none. */
static inline const void *shim_tiff_profile(TIFF *tiff, uint32_t *count) {
    void *profile = 0;
    return TIFFGetField(tiff, TIFFTAG_ICCPROFILE, count, &profile) == 1 ? profile : 0;
}

/* A number that has 16 bits in the library, or `otherwise` where there is none. */
static inline uint16_t shim_tiff_short(TIFF *tiff, uint32_t tag, uint16_t otherwise) {
    uint16_t value = otherwise;
    return TIFFGetFieldDefaulted(tiff, tag, &value) == 1 ? value : otherwise;
}

/* The meanings of the samples beyond the colours, which belong to the library, and their count. */
static inline const uint16_t *shim_tiff_extra_samples(TIFF *tiff, uint16_t *count) {
    uint16_t *meanings = 0;
    *count = 0;
    return TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, count, &meanings) == 1 ? meanings : 0;
}
