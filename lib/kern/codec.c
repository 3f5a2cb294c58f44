/* codec.c - filling the table of codecs: C first, then each level */
#include "config.h"
#include "kern/codec.h"
#include "kern/cpu.h"

#include <string.h>

void gg_codec_kern_init(struct gg_codec_kern *table, uint32_t cpu)
{
    memset(table, 0, GG_N_DTYPES * sizeof *table);
#define X(TYPE, NAME) table[GG_DT_##TYPE].decode = gg_decode_##NAME##_c;
    GG_DECODE_C_LIST(X)
#undef X
#define X(TYPE, NAME, FLAGS)                                                  \
    table[GG_DT_##TYPE].encode = gg_encode_##NAME##_c;                        \
    table[GG_DT_##TYPE].flags = FLAGS;
    GG_ENCODE_C_LIST(X)
#undef X
#ifdef HAVE_X86_AVX2
    if (cpu & GG_CPU_AVX2) {
# define X(TYPE, NAME) table[GG_DT_##TYPE].decode = gg_decode_##NAME##_avx2;
        GG_DECODE_AVX2_LIST(X)
# undef X
# define X(TYPE, NAME) table[GG_DT_##TYPE].encode = gg_encode_##NAME##_avx2;
        GG_ENCODE_AVX2_LIST(X)
# undef X
    }
#endif
    (void)cpu;
}
