/* SPDX-License-Identifier: MIT */
/* fuzz_convert.c - what folders of models consist of: safetensors, an index of
 * them, JSON, the files of tokenizers, a model card; the first byte says which.
 * Of weights that are packed a byte more says how, and one how many bits they
 * have.
 */
#include "config.h"
#include "base/compiler.h"
#include "base/json_scan.h"
#include "base/str.h"
#include "convert/card.h"
#include "convert/vocab.h"
#include "data/nibbles.h"
#include "data/packed.h"
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

/* ---- an index ---- */

#define FAR "far:f/"
#define ONE(NAME)                                                             \
    "\x38\0\0\0\0\0\0\0{\"" NAME                                              \
    "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}  \0\0\x80\x3f"

/* A folder of an index, which is the input, and two files of a tensor each;
 * the input must ask for nothing that is not directly in it. */
struct far_file {
    const char *data;
    size_t size;
};

static int far_takes(void *user, const char *path)
{
    (void)user;
    return !strncmp(path, "far:", 4);
}

static enum gguf_status far_read(void *user, uint64_t off, void *dst,
                                 size_t size, struct gguf_error *err)
{
    const struct far_file *f = user;
    (void)err;
    MUST(size && off <= f->size && size <= f->size - off);
    memcpy(dst, f->data + off, size);
    return GGUF_OK;
}

static enum gguf_status far_open(void *user, const char *path,
                                 struct gguf_reader *out,
                                 struct gguf_error *err)
{
    static const char x[] = ONE("x"), y[] = ONE("y");
    static struct far_file files[] = { { x, sizeof x - 1 },
                                       { y, sizeof y - 1 } };
    struct far_file *f = user;
    const char *name = path + sizeof FAR - 1;
    MUST(!strncmp(path, FAR, sizeof FAR - 1) && !strpbrk(name, "/\\") &&
         *name != '.');
    if (!strcmp(name, "a.safetensors"))
        f = &files[0];
    else if (!strcmp(name, "b.safetensors"))
        f = &files[1];
    else if (strcmp(name, "model.safetensors.index.json") != 0)
        return gguf_error_set(err, GGUF_E_NOTFOUND, "is not there");
    out->user = f;
    out->size = f->size;
    out->read = far_read;
    return GGUF_OK;
}

static void try_index(const uint8_t *data, size_t size)
{
    static struct gg_codec_kern codec[GG_N_DTYPES];
    struct far_file index = { (const char *)data, size };
    const struct gguf_opener opener = { sizeof opener, far_takes, far_open,
                                        &index };
    const struct gg_dir folder = { .path = "far:f", .opener = &opener };
    struct gg_safetensors *s;
    struct gguf_error err;
    gguf_error_clear(&err);
    gg_codec_kern_init(codec, gg_kern_cpu_detect());
    if (gg_safetensors_open(&s, &folder, "model", NULL, codec, &err) !=
        GGUF_OK) {
        MUST(!s && err.message[0] &&
             (err.offset == GGUF_NO_OFFSET || err.offset <= size));
        return;
    }
    for (size_t i = 0; i < s->n_tensors; i++) {
        const char *name = s->tensor[i].name.data;
        MUST(!strcmp(name, "x") || !strcmp(name, "y"));
        MUST(gg_safetensors_find(s, s->tensor[i].name) == i);
    }
    gg_safetensors_close(s);
}

/* Everything that can be read of tensor i: as floats, and as it is given. */
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
enum {
    N_PACKED = GG_PACKED_E2M1 + 1,
    N_FORMS = N_PACKED + GG_NIBBLES_BNB + 1
};

static enum gguf_status join(struct gg_safetensors *s,
                             struct gg_packed_config *config, unsigned form,
                             struct gguf_error *err)
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
    if (gg_safetensors_memory(&s, data + 2, size - 2, NULL, codec, NULL,
                              &err) != GGUF_OK)
        return;
    if (join(s, &config, form, &err) != GGUF_OK ||
        gg_safetensors_scale(s, &err) != GGUF_OK)
        MUST(err.message[0]);
    else
        for (size_t i = 0; i < s->n_tensors; i++) {
            if (!s->tensor[i].packed && !s->tensor[i].nibbles)
                (void)gg_safetensors_index(s, i, &err);
            read_tensor(s, i);
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

/* ---- tokenizers ---- */

struct vocab {
    struct gguf_convert c;
    struct gg_convert_vocab v;
    struct gguf_error err;
};

static void begin_vocab(struct vocab *t)
{
    memset(t, 0, sizeof *t);
    t->v.c = &t->c;
    t->v.unk = t->v.space_prefix = -1;
    gguf_error_clear(&t->err);
    gg_mem_arena_init(&t->c.arena, NULL);
    MUST(gguf_meta_create(&t->c.meta, NULL, &t->err) == GGUF_OK);
}

/* whole: every id has a text. */
static void end_vocab(struct vocab *t, enum gguf_status st, bool whole)
{
    struct gg_convert_ends ends;
    const struct gg_convert_vocab *v = &t->v;
    if (st == GGUF_OK) {
        MUST(v->model && v->n && v->n <= v->room);
        MUST(v->unk >= -1 && v->unk < (int64_t)v->n);
        for (size_t i = 0; i < v->n; i++) {
            MUST(!whole || v->token[i].data);
            MUST(v->type[i] >= GG_CONVERT_NORMAL &&
                 v->type[i] <= GG_CONVERT_BYTE);
        }
        gg_convert_vocab_ends(v, &ends);
        if (v->finish && v->finish(&t->v, &t->err) != GGUF_OK)
            MUST(t->err.message[0]);
        if (v->last_keys && v->last_keys(&t->v, &t->err) != GGUF_OK)
            MUST(t->err.message[0]);
    } else {
        MUST(t->err.message[0]);
    }
    for (size_t i = 0; i < GG_CONVERT_N_TEXTS; i++)
        gg_json_fini(&t->c.text[i].json);
    gguf_meta_destroy(t->c.meta);
    gg_mem_free(NULL, t->v.token);
    gg_mem_free(NULL, t->v.score);
    gg_mem_free(NULL, t->v.type);
    gg_mem_free(NULL, t->v.merge);
    gg_mem_arena_fini(&t->c.arena);
}

static void try_file(enum gguf_status (*read)(struct gg_convert_vocab *v,
                                              const struct gg_mapfile *m,
                                              struct gguf_error *err),
                     const uint8_t *data, size_t size)
{
    static const char config[] = "{\"architectures\":[\"XLMRobertaModel\"]}";
    struct vocab t;
    struct gg_mapfile m;
    begin_vocab(&t);
    MUST(gg_json_read(&t.c.text[GG_CONVERT_CONFIG].json, config,
                      sizeof config - 1, 0, 0, &t.err) == GGUF_OK);
    MUST(gg_mapfile_memory(&m, data, size, 0, size, &t.err) == GGUF_OK);
    const enum gguf_status st = read(&t.v, &m, &t.err);
    gg_mapfile_close(&m);
    end_vocab(&t, st, true);
}

static void try_tokenizer(const uint8_t *data, size_t size)
{
    struct vocab t;
    begin_vocab(&t);
    enum gguf_status st = gg_json_read_but(
        &t.c.text[GG_CONVERT_TOKENIZER].json, (const char *)data, size, 0,
        GG_JSON_PYTHON, gg_convert_vocab_later, &t.err);
    if (st == GGUF_OK)
        st = gg_convert_vocab_json(&t.v, &t.err);
    if (st == GGUF_OK && !t.v.pre) {
        st = gg_convert_vocab_pre(&t.v, &t.err);
        MUST(st != GGUF_OK || t.v.pre);
    }
    end_vocab(&t, st, false);
}

/* ---- read where it lies, and as a tree ---- */

static bool scan_value(struct gg_json_scan *s, const json_t *v);

static bool scan_items(struct gg_json_scan *s, const json_t *v)
{
    const bool object = json_is_object(v);
    size_t n = 0;
    for (; gg_json_scan_more(s); n++) {
        struct gguf_str name;
        if (!object) {
            if (!scan_value(s, v ? json_array_get(v, n) : NULL))
                return false;
            continue;
        }
        if (!gg_json_scan_name(s, &name))
            return false;
        const char *z = gg_mem_arena_strndup(s->arena, name.data, name.size);
        const json_t *e = json_object_get(v, z);
        MUST(z && e);
        if (!scan_value(s, e))
            return false;
    }
    MUST(!v || s->status != GGUF_OK ||
         n == (object ? json_object_size(v) : json_array_size(v)));
    return s->status == GGUF_OK;
}

/* The next value is v, if that is none; false: it is not one that is read. */
static bool scan_value(struct gg_json_scan *s, const json_t *v)
{
    struct gguf_str text, same;
    double x;
    if (gg_json_scan_list(s)) {
        MUST(!v || json_is_array(v));
        return scan_items(s, v);
    }
    if (gg_json_scan_str(s, &text)) {
        MUST(!v || (gg_json_str(v, &same) && gg_str_eq(text, same)));
        return true;
    }
    if (!gg_json_scan_num(s, &x))
        return false;
    MUST(!v || (json_is_number(v) && x == json_number_value(v)));
    return true;
}

static size_t pass_blanks(const uint8_t *data, size_t size, size_t at)
{
    while (at < size && data[at] && strchr(" \t\r\n", data[at]))
        at++;
    return at;
}

/* A list or object must be the same as Jansson makes of it; a list of what is
 * read is refused where that refuses it. */
static void try_scan(const uint8_t *data, size_t size)
{
    struct gg_json j;
    struct gg_json_scan s;
    struct gg_mem_arena arena;
    struct gguf_error err;
    const size_t begin = pass_blanks(data, size, 0);
    gguf_error_clear(&err);
    const bool read =
        gg_json_read(&j, (const char *)data, size, 0, 0, &err) == GGUF_OK;
    if (!read && (begin == size || data[begin] != '['))
        return;
    json_t *any = read ? NULL : json_array();
    struct gg_json outside = j;
    outside.root = read ? j.root : any;
    MUST(outside.root);
    gg_mem_arena_init(&arena, NULL);
    gg_json_scan_open(&s, &outside, outside.root, &arena);
    const bool whole = scan_items(&s, j.root);
    const enum gguf_status st = gg_json_scan_end(&s, &err);
    MUST(!read || st == GGUF_OK);
    MUST(st == GGUF_OK || (err.message[0] && err.offset <= size));
    MUST(read || !whole || pass_blanks(data, size, s.at) < size);
    json_decref(any);
    gg_json_fini(&j);
    gg_mem_arena_fini(&arena);
}

static void try_card(const uint8_t *data, size_t size)
{
    struct gg_mem_arena a;
    struct gg_card c;
    struct gguf_error err;
    gguf_error_clear(&err);
    gg_mem_arena_init(&a, NULL);
    if (gg_card_read(&c, &a, (const char *)data, size, &err) != GGUF_OK)
        MUST(!c.n && err.message[0] && err.offset <= size);
    for (size_t i = 0; i < c.n; i++)
        for (size_t k = 0; k < c.pair[i].n; k++) {
            struct gg_card_name n;
            const struct gguf_str s = c.pair[i].item[k];
            MUST(s.data && s.size <= size);
            if (gg_card_name(&n, &a, s, 1e9, &err) == GGUF_OK && n.name)
                MUST(gg_card_title(&a, n.name));
        }
    gg_mem_arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    switch (*data++) {
    case 'C': try_card(data, size - 1); break;
    case 's': try_safetensors(data, size - 1); break;
    case 'i': try_index(data, size - 1); break;
    case 'j':
        try_json(data, size - 1, 0);
        try_json(data, size - 1, GG_JSON_PYTHON);
        break;
    case 'k': try_file(gg_convert_vocab_tiktoken, data, size - 1); break;
    case 'l': try_file(gg_convert_vocab_plamo, data, size - 1); break;
    case 'q': try_packed(data, size - 1); break;
    case 'r': try_file(gg_convert_vocab_rwkv, data, size - 1); break;
    case 'w': try_file(gg_convert_vocab_wpm_txt, data, size - 1); break;
    case 'x': try_file(gg_convert_vocab_fairseq, data, size - 1); break;
    case 'y': try_scan(data, size - 1); break;
    case 't': try_tokenizer(data, size - 1); break;
    default: try_file(gg_convert_vocab_spm, data, size - 1);
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

/* Weights of a form: its number and the byte of bits come first; the shape that
 * one form ends with, after zeros. */
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

static void seed_bytes(const char *data, size_t n)
{
    fix_bytes(new_seed(), data, n);
}

void fuzz_make_seeds(void)
{
    static const char spm[] = "p\x0a\x0a\x0a\x01"
                              "a\x15\0\0\x80\xbf\x18\x01\x12\x05\x0a\x01x\x18"
                              "\x02\x1a\x02\x18\x00";
    static const char xlmr[] =
        "x\x0a\x09\x0a\x05<unk>\x18\x02\x0a\x07\x0a\x03<s>"
        "\x18\x03\x0a\x08\x0a\x04</s>\x18\x03\x0a\x03\x0a"
        "\x01"
        "a\x1a\x04\x20\x01\x28\x01";
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
    seed_text("i{\"metadata\":{\"total_size\":8},\"weight_map\":{\"x\":"
              "\"a.safetensors\",\"y\":\"b.safetensors\"}}");
    seed_text("i{\"weight_map\":{\"x\":\"../a.safetensors\"}}");
    seed_text("y[\"a\",[\"b\\u00e9\\ud83d\\ude00\",\"\xc3\xa9\"],-1.5,0,"
              "13.528341293334961,1e-3,[[]],\"\\\\\"]");
    seed_text("y{\"a\":0,\"b\\\"\":1,\"\xe4\xb8\xad\":[\"x\",-0.25]}");
    seed_bytes("y{\"a\":1\0,\"b\":0}", 15);
    seed_text("C---\nk: >-\n  [\n "
              "\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t"
              "b\n---\n");
    seed_text("C---\nbase_model: a-b/C-7b1-v0.1-8x7B-Q4_K\ntags: [x, 'y', "
              "\"\\u00e9\"]\nlicense:\n- mit # x\n- a: b\n  c: d\nk: >-\n  "
              "a\n\n  b\n---\n");
    seed_bytes(spm, sizeof spm - 1);
    seed_bytes(xlmr, sizeof xlmr - 1);
    seed_text(
        "r1 '\\x00' 1\n2 \"it's\" 4\n3 b'\\xff\\'\"' 3\n4 '\\u4e2d' 3\n");
    seed_text("kYQ== 0\nYg== 1\nYWI= 2\n//4= 3\n");
    seed_text("l[\"<|plamo:unk|>\",0,\"UNKNOWN\"]\n[\"<0x41>\",0,\"BYTE\"]\n"
              "[\"a\",-1.5]\n[\"ab\",-2,\"NORMAL\",\"\"]\n"
              "[\"<|plamo:op|>\",0,\"CONTROL\"]\n");
    seed_forms();
    seed_nibbles();
    seed_text("w[PAD]\n[UNK]\n[CLS]\nun\n##able\r\n\xc3\xa9\n");
    seed_text(
        "t{\"added_tokens\":[{\"id\":0,\"content\":\"[UNK]\",\"special\":"
        "true}],\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":"
        "true},\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"model\":{"
        "\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"vocab\":{\"[UNK]\":"
        "0,\"a\":1,\"##b\":2}}}");
    seed_text(
        "t{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[{\"type\":"
        "\"Precompiled\",\"precompiled_charsmap\":\"BAAAAAAAAABh\"},{\"type\":"
        "\"Strip\"}]},\"pre_tokenizer\":{\"type\":\"Metaspace\","
        "\"prepend_scheme\":\"always\"},\"post_processor\":{\"type\":"
        "\"TemplateProcessing\",\"single\":[{\"Sequence\":{\"id\":\"A\"}},{"
        "\"SpecialToken\":{\"id\":\"</s>\"}}],\"pair\":[]},\"model\":{"
        "\"type\":\"Unigram\",\"unk_id\":1,\"byte_fallback\":true,\"vocab\":[["
        "\"</s>\",0],[\"<unk>\",0],[\"<0x41>\",-1.5]]}}");
    seed_text(
        "t{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{"
        "\"type\":\"Split\",\"pattern\":{\"Regex\":\"'(?i:[sdmt]|ll|ve|re)|"
        "\\\\p{L}+|\\\\s+(?!\\\\S)\"},\"behavior\":\"Isolated\"},{\"type\":"
        "\"Digits\",\"individual_digits\":true},{\"type\":\"ByteLevel\","
        "\"add_prefix_space\":false,\"use_regex\":false}]},\"model\":{"
        "\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":["
        "\"a b\"]}}");
}
