/* fuzz_convert.c - what folders of models consist of: safetensors, JSON, a
 * tokenizer.model; the first byte says which
 */
#include "config.h"
#include "base/compiler.h"
#include "convert/vocab.h"
#include "kern/cpu.h"
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
    if (gg_safetensors_memory(&s, data, size, NULL, codec, NULL, &err) !=
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

static void try_json(const uint8_t *data, size_t size, unsigned flags)
{
    struct gg_json j;
    struct gguf_error err;
    gguf_error_clear(&err);
    if (gg_json_read(&j, (const char *)data, size, 0, flags, &err) !=
        GGUF_OK) {
        MUST(!j.root && err.message[0] && err.offset <= size);
        return;
    }
    const json_t *v = j.root; /* the first of the first ... */
    while (json_array_size(v))
        v = json_array_get(v, json_array_size(v) - 1);
    MUST(gg_json_place(&j, v) < size);
    gg_json_fini(&j);
}

static void try_spm(const uint8_t *data, size_t size)
{
    struct gguf_convert c;
    struct gg_convert_vocab v = { .c = &c };
    struct gg_mapfile m;
    struct gguf_error err;
    memset(&c, 0, sizeof c);
    gguf_error_clear(&err);
    gg_mem_arena_init(&c.arena, NULL);
    MUST(gg_mapfile_memory(&m, data, size, 0, size, &err) == GGUF_OK);
    if (gg_convert_vocab_spm(&v, &m, &err) == GGUF_OK)
        for (size_t i = 0; i < v.n; i++)
            MUST(v.token[i].data && v.type[i] >= GG_CONVERT_NORMAL &&
                 v.type[i] <= GG_CONVERT_BYTE &&
                 gg_convert_vocab_find(&v, v.token[i]) >= 0);
    else
        MUST(err.message[0]);
    gg_mapfile_close(&m);
    gg_mem_free(NULL, v.token);
    gg_mem_free(NULL, v.score);
    gg_mem_free(NULL, v.type);
    gg_mem_arena_fini(&c.arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    switch (*data) {
    case 's': try_safetensors(data + 1, size - 1); break;
    case 'j':
        try_json(data + 1, size - 1, 0);
        try_json(data + 1, size - 1, GG_JSON_PYTHON);
        break;
    default: try_spm(data + 1, size - 1);
    }
    return 0;
}

static void seed_tensors(const char *header, size_t n_data)
{
    static const uint8_t zeros[64];
    struct fix *f = new_seed();
    fix_u8(f, 's');
    fix_u64(f, strlen(header));
    fix_bytes(f, header, strlen(header));
    fix_bytes(f, zeros, n_data);
}

static void seed_bytes(const char *data, size_t n)
{
    fix_bytes(new_seed(), data, n);
}

void fuzz_make_seeds(void)
{
    static const char spm[] = "p\x0a\x0a\x0a\x01"
                              "a\x15\0\0\x80\xbf\x18\x01\x12\x05\x0a\x01x\x18"
                              "\x02\x1a\x02\x18\x00";
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
    seed_text("j{\"a\":[1,-2.5e3,\"x\\u00e9\",null,{\"b\":[]}],\"c\":"
              "1000000000000000019884624838656}");
    seed_text("j[Infinity,[-Infinity,[true,[\"\\\\\"]]]]");
    seed_bytes(spm, sizeof spm - 1);
}
