/* SPDX-License-Identifier: MIT */
/* fuzz_safetensors.c - a safetensors file, as it is or with packed weights
 *
 * After a byte 'q' weights are packed: the next byte chooses the form, and
 * another one the number of bits.
 */
#include "config.h"
#include "base/compiler.h"
#include "data/nibbles.h"
#include "data/packed.h"
#include "kern/cpu_features.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

enum { PIECE = 4096 }; /* elements read at once */

static void try_safetensors(const uint8_t *data, size_t size)
{
    static struct gg_codec_kern codec[GG_N_DTYPES];
    static float x[PIECE];
    struct gg_safetensors *s;
    struct gguf_error err;
    gguf_error_clear(&err);
    gg_codec_kern_init(codec, gg_kern_cpu_detect());
    if (gg_safetensors_open_memory(&s, data, size, NULL, codec, NULL, &err) !=
        GGUF_OK) {
        MUST(!s && err.message[0]);
        return;
    }
    for (size_t i = 0; i < s->n_tensors; i++) {
        const struct gg_safetensors_tensor *t = &s->tensor[i];
        struct gg_data_rows r;
        MUST(gg_safetensors_find(s, t->name) == i);
        MUST(t->off <= size && t->size <= size - t->off);
        if (gg_data_rows(&s->list, i, &r, &err) != GGUF_OK)
            continue;
        for (uint64_t at = 0; at < t->n_elements; at += PIECE)
            gg_data_read(&r, at, GG_MIN(t->n_elements - at, PIECE), x);
    }
    gg_safetensors_close(s);
}

/* Read everything of tensor i: as floats, and in its own type. */
static void read_tensor(const struct gg_safetensors *s, size_t i)
{
    static float x[PIECE];
    static uint8_t blocks[4 * PIECE];
    struct gg_data_info info;
    struct gg_data_rows r;
    struct gguf_error err;
    gg_data_info(&s->list, i, &info);
    if (gg_data_rows(&s->list, i, &r, &err) != GGUF_OK)
        return;
    for (uint64_t at = 0, n; at < info.n_elements; at += n) {
        n = GG_MIN(info.n_elements - at, PIECE);
        gg_data_read(&r, at, n, x);
        if (r.blocks && n % gguf_dtype_find(info.dtype)->block_len == 0)
            r.blocks(&r, at, n, blocks);
        s->list.ops->advise(&s->list, i, at, n, GG_ADVISE_DONTNEED);
    }
}

/* Forms of packed.h, then those of nibbles.h. */
enum { N_PACKED = GG_N_PACKED_FORMS, N_FORMS = N_PACKED + GG_NIBBLES_BNB + 1 };

static enum gguf_status join_file(struct gg_safetensors *s,
                                  struct gg_packed_config *config,
                                  unsigned form, struct gguf_error *err)
{
    if (form >= N_PACKED)
        return gg_nibbles_join(s, (enum gg_nibbles_form)(form - N_PACKED),
                               err);
    config->form = (enum gg_packed_form)form;
    return gg_packed_join(s, config, err);
}

static void try_packed(const uint8_t *data, size_t size)
{
    static struct gg_codec_kern codec[GG_N_DTYPES];
    static const unsigned bits[] = { 2, 4, 8, 3 };
    struct gg_packed_config config = { .form = GG_PACKED_GPTQ };
    struct gg_safetensors *s;
    struct gguf_error err;
    if (size < 2)
        return;
    const unsigned form = data[0] % N_FORMS;
    config.bits = bits[data[1] % 4];
    config.group = data[1] >> 4;
    config.zero_plus_1 = data[1] & 8;
    gguf_error_clear(&err);
    gg_codec_kern_init(codec, gg_kern_cpu_detect());
    if (gg_safetensors_open_memory(&s, data + 2, size - 2, NULL, codec, NULL,
                                   &err) != GGUF_OK)
        return;
    if (join_file(s, &config, form, &err) != GGUF_OK ||
        gg_safetensors_scale(s, &err) != GGUF_OK)
        MUST(err.message[0]);
    else
        for (size_t i = 0; i < s->n_tensors; i++) {
            if (!s->tensor[i].packed && !s->tensor[i].nibbles)
                (void)gg_safetensors_convert_to_i32(s, i, &err);
            read_tensor(s, i);
        }
    gg_safetensors_close(s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size && *data == 'q')
        try_packed(data + 1, size - 1);
    else
        try_safetensors(data, size);
    return 0;
}

static void seed_tensors(const char *header, size_t n_data)
{
    static const uint8_t zeros[64];
    struct fix *f = new_seed();
    fix_u64(f, strlen(header));
    fix_bytes(f, header, strlen(header));
    fix_bytes(f, zeros, n_data);
}

/* Seed: weights of a form. Its number and the byte of bits come first; one
 * form ends with the shape, after zeros. */
static void seed_packed(unsigned form, uint8_t how, const char *header,
                        size_t n_data)
{
    static const uint8_t zeros[128];
    const bool shape = form == GG_PACKED_WORDS;
    struct fix *f = new_seed();
    fix_u8(f, 'q');
    fix_u8(f, (uint8_t)form);
    fix_u8(f, how);
    fix_u64(f, strlen(header));
    fix_bytes(f, header, strlen(header));
    fix_bytes(f, zeros, n_data - (shape ? 16 : 0));
    if (shape) {
        fix_u64(f, 2);
        fix_u64(f, 8);
    }
}

static void seed_forms(void)
{
    seed_packed(GG_PACKED_GPTQ, 1,
                "{\"a.qweight\":{\"dtype\":\"I32\",\"shape\":[1,8],"
                "\"data_offsets\":[0,32]},\"a.qzeros\":{\"dtype\":\"I32\","
                "\"shape\":[1,1],\"data_offsets\":[32,36]},\"a.scales\":{"
                "\"dtype\":\"F16\",\"shape\":[1,8],\"data_offsets\":[36,52]},"
                "\"a.g_idx\":{\"dtype\":\"I32\",\"shape\":[8],"
                "\"data_offsets\":[52,84]}}",
                84);
    seed_packed(GG_PACKED_AWQ, 1,
                "{\"a.qweight\":{\"dtype\":\"I32\",\"shape\":[4,1],"
                "\"data_offsets\":[0,16]},\"a.qzeros\":{\"dtype\":\"I32\","
                "\"shape\":[1,1],\"data_offsets\":[16,20]},\"a.scales\":{"
                "\"dtype\":\"F16\",\"shape\":[1,8],\"data_offsets\":[20,36]}"
                "}",
                36);
    seed_packed(GG_PACKED_WORDS, 1,
                "{\"a.weight_packed\":{\"dtype\":\"I32\",\"shape\":[2,1],"
                "\"data_offsets\":[0,8]},\"a.weight_scale\":{\"dtype\":"
                "\"BF16\",\"shape\":[2,1],\"data_offsets\":[8,12]},"
                "\"a.weight_shape\":{\"dtype\":\"I64\",\"shape\":[2],"
                "\"data_offsets\":[12,28]}}",
                28);
    seed_packed(GG_PACKED_INT, 2,
                "{\"a.weight\":{\"dtype\":\"I8\",\"shape\":[2,4],"
                "\"data_offsets\":[0,8]},\"a.weight_scale\":{\"dtype\":"
                "\"F32\",\"shape\":[2,1],\"data_offsets\":[8,16]}}",
                16);
    seed_packed(GG_PACKED_MXFP4, 1,
                "{\"a_blocks\":{\"dtype\":\"U8\",\"shape\":[2,1,16],"
                "\"data_offsets\":[0,32]},\"a_scales\":{\"dtype\":\"U8\","
                "\"shape\":[2,1],\"data_offsets\":[32,34]}}",
                34);
    seed_packed(GG_PACKED_E2M1, 1,
                "{\"a.weight\":{\"dtype\":\"I8\",\"shape\":[2,16],"
                "\"data_offsets\":[0,32]},\"a.scale\":{\"dtype\":"
                "\"F8_E8M0\",\"shape\":[2,1],\"data_offsets\":[32,34]},"
                "\"b.weight\":{\"dtype\":\"F8_E4M3\",\"shape\":[2,4],"
                "\"data_offsets\":[34,42]},\"b.scale\":{\"dtype\":"
                "\"F8_E8M0\",\"shape\":[1,1],\"data_offsets\":[42,43]},"
                "\"t\":{\"dtype\":\"I64\",\"shape\":[2],"
                "\"data_offsets\":[43,59]}}",
                59);
    seed_packed(GG_PACKED_MXFP4_PACK, 1,
                "{\"a.weight_packed\":{\"dtype\":\"U8\",\"shape\":[2,16],"
                "\"data_offsets\":[0,32]},\"a.weight_scale\":{\"dtype\":"
                "\"U8\",\"shape\":[2,1],\"data_offsets\":[32,34]}}",
                34);
}

static void seed_nibbles(void)
{
    seed_packed(N_PACKED + GG_NIBBLES_NVFP4, 1,
                "{\"a.weight\":{\"dtype\":\"U8\",\"shape\":[2,8],"
                "\"data_offsets\":[0,16]},\"a.weight_scale\":{\"dtype\":"
                "\"F8_E4M3\",\"shape\":[2,1],\"data_offsets\":[16,18]},"
                "\"a.weight_scale_2\":{\"dtype\":\"F32\",\"shape\":[],"
                "\"data_offsets\":[18,22]}}",
                22);
    seed_packed(N_PACKED + GG_NIBBLES_BNB, 1,
                "{\"a.weight\":{\"dtype\":\"U8\",\"shape\":[8,1],"
                "\"data_offsets\":[0,8]},\"a.weight.absmax\":{\"dtype\":"
                "\"F32\",\"shape\":[2],\"data_offsets\":[8,16]},"
                "\"a.weight.quant_map\":{\"dtype\":\"F32\",\"shape\":[16],"
                "\"data_offsets\":[16,80]},"
                "\"a.weight.quant_state.bitsandbytes__nf4\":{\"dtype\":"
                "\"U8\",\"shape\":[32],\"data_offsets\":[80,112]}}",
                112);
    seed_packed(GG_PACKED_SCB, 1,
                "{\"a.weight\":{\"dtype\":\"I8\",\"shape\":[2,4],"
                "\"data_offsets\":[0,8]},\"a.SCB\":{\"dtype\":\"F32\","
                "\"shape\":[2],\"data_offsets\":[8,16]}}",
                16);
}

void fuzz_make_seeds(void)
{
    seed_tensors("{\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":["
                 "0,16]},\"__metadata__\":{\"x\":\"y\"}}",
                 16);
    seed_tensors("{\"w\":{\"dtype\":\"F8_E4M3\",\"shape\":[3,4],"
                 "\"data_offsets\":[0,12]},\"w_scale\":{\"dtype\":\"F32\","
                 "\"shape\":[3,1],\"data_offsets\":[12,24]}}",
                 24);
    seed_tensors("{\"a\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[0,"
                 "2]},\"b\":{\"dtype\":\"I8\",\"shape\":[0],\"data_offsets\":["
                 "2,2]}}",
                 2);
    seed_forms();
    seed_nibbles();
}
