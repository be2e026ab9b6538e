#include <seccomp.h>

/* SCMP_ACT_ERRNO is a function-like macro, which Swift does not import. */
static inline uint32_t shim_scmp_act_errno(uint16_t error) { return SCMP_ACT_ERRNO(error); }
