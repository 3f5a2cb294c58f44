/* SPDX-License-Identifier: MIT */
/* fuzz_index.c - a safetensors index: the file of each tensor */
#include "config.h"
#include "data/safetensors.h"
#include "kern/cpu_features.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

#define FAR "far:f/"
#define ONE(NAME)                                                             \
    "\x38\0\0\0\0\0\0\0{\"" NAME                                              \
    "\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}  \0\0\x80\x3f"

/* A folder with an index, which is the input, and two files of a tensor each.
 * Only files directly in it may be opened. */
struct far_file {
    const char *data;
    size_t size;
};

static bool far_takes(void *user, const char *path)
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
    out->read_at = far_read;
    return GGUF_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
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
        return 0;
    }
    for (size_t i = 0; i < s->n_tensors; i++) {
        const char *name = s->tensor[i].name.data;
        MUST(!strcmp(name, "x") || !strcmp(name, "y"));
        MUST(gg_safetensors_find(s, s->tensor[i].name) == i);
    }
    gg_safetensors_close(s);
    return 0;
}

void fuzz_make_seeds(void)
{
    seed_text("{\"metadata\":{\"total_size\":8},\"weight_map\":{\"x\":"
              "\"a.safetensors\",\"y\":\"b.safetensors\"}}");
    seed_text("{\"weight_map\":{\"x\":\"../a.safetensors\"}}");
    seed_text("{\"weight_map\":{\"x\":\"b.safetensors\"}}");
    seed_text("{\"weight_map\":{\"x\":\"a.safetensors\",\"x\":1}}");
}
