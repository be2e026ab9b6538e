#include <jxl/decode.h>
#include <jxl/encode.h>
#include <jxl/version.h>

/* Before libjxl 0.9 these functions took a pixel format, which none of them used. */
#if JPEGXL_NUMERIC_VERSION < JPEGXL_COMPUTE_NUMERIC_VERSION(0, 9, 0)
#define SHIM_JXL_FORMAT NULL,
#else
#define SHIM_JXL_FORMAT
#endif

/* Whether code points describe the colours. */
static inline int shim_jxl_encoding(
    const JxlDecoder *decoder, JxlColorProfileTarget target, JxlColorEncoding *encoding) {
    return JxlDecoderGetColorAsEncodedProfile(decoder, SHIM_JXL_FORMAT target, encoding) == JXL_DEC_SUCCESS;
}

/* Bytes of the ICC profile of the decoded pixels; 0 if there is none. */
static inline size_t shim_jxl_profile_size(const JxlDecoder *decoder) {
    size_t size = 0;
    JxlDecoderStatus status =
        JxlDecoderGetICCProfileSize(decoder, SHIM_JXL_FORMAT JXL_COLOR_PROFILE_TARGET_DATA, &size);
    return status == JXL_DEC_SUCCESS ? size : 0;
}

/* Reads that profile into as many bytes. Returns whether it succeeded. */
static inline int shim_jxl_profile(const JxlDecoder *decoder, uint8_t *profile, size_t size) {
    return JxlDecoderGetColorAsICCProfile(
               decoder, SHIM_JXL_FORMAT JXL_COLOR_PROFILE_TARGET_DATA, profile, size) == JXL_DEC_SUCCESS;
}
