/* SPDX-License-Identifier: MIT */
/* check-image-limits.c - files of image and video models have wider limits
 *
 * A file has the keys general.architecture and, if it is a later shard,
 * split.no in its place; and one tensor.
 */
#include "config.h"
#include "base/bytes.h"
#include "convert/image/image.h"
#include "file/image_models.h"
#include "gguf/file.h"
#include "gguf/meta.h"
#include "tests/tap.h"

#include <string.h>

static uint8_t bytes[1024];
static size_t size;
static struct gguf_error err;

static void put32(uint32_t x)
{
    gg_bytes_store32le(bytes + size, x);
    size += 4;
}

static void put64(uint64_t x)
{
    gg_bytes_store64le(bytes + size, x);
    size += 8;
}

static void put_str(const char *s, size_t n)
{
    put64(n);
    memcpy(bytes + size, s, n);
    size += n;
}

/* Open a file with a tensor of F32. arch NULL: a later shard. */
static enum gguf_status open_file(const char *arch, size_t name_size,
                                  unsigned n_dims, uint64_t ne,
                                  const struct gguf_limits *limits)
{
    char name[200];
    struct gguf_file *f;
    struct gguf_file_params p = GGUF_FILE_PARAMS_INIT;
    memset(bytes, 0, sizeof bytes);
    memset(name, 'n', sizeof name);
    size = 0;
    put32(0x46554747); /* GGUF */
    put32(3);
    put64(1);
    put64(1);
    if (arch) {
        put_str("general.architecture", 20);
        put32(8); /* a string */
        put_str(arch, strlen(arch));
    } else {
        put_str("split.no", 8);
        put32(2); /* u16 */
        size += 2;
    }
    put_str(name, name_size);
    put32(n_dims);
    for (unsigned d = 0; d < n_dims; d++)
        put64(ne);
    put32(0);
    put64(0);
    p.limits = limits;
    p.single_file = true;
    gguf_error_clear(&err);
    const enum gguf_status st =
        gguf_file_open_memory(&f, bytes, (size + 63) / 32 * 32, &p, &err);
    if (st == GGUF_OK) {
        const struct gguf_tensor_info *t = gguf_file_tensor(f, 0);
        uint64_t n = 1;
        for (unsigned d = 0; d < n_dims; d++)
            n *= ne;
        ok(t->n_elements == n && t->size == 4 * n, "sizes of %s",
           arch ? arch : "-");
    }
    gguf_file_close(f);
    return st;
}

int main(void)
{
    struct gguf_limits limits = GGUF_LIMITS_INIT;
    const struct gg_image_arch *a;
    ok(open_file("flux", 127, 5, 1, NULL) == GGUF_OK,
       "a name of 127 bytes, five dimensions: %s", err.message);
    ok(open_file("flux", 128, 1, 1, NULL) == GGUF_E_LIMIT,
       "a name of 128 bytes: %s", err.message);
    ok(open_file("flux", 9, 6, 1, NULL) == GGUF_E_LIMIT, "six dimensions: %s",
       err.message);
    ok(open_file("wan", 9, 1, 0, NULL) == GGUF_OK &&
           open_file("wan", 9, 3, 0, NULL) == GGUF_OK,
       "no elements: %s", err.message);
    ok(open_file("wan", 9, 1, UINT64_MAX, NULL) == GGUF_E_OVERFLOW,
       "a negative dimension: %s", err.message);
    ok(open_file("llama", 65, 1, 1, NULL) == GGUF_E_LIMIT &&
           open_file("llama", 9, 5, 1, NULL) == GGUF_E_LIMIT &&
           open_file("llama", 9, 1, 0, NULL) == GGUF_E_FORMAT,
       "not in files of other models: %s", err.message);
    ok(open_file(NULL, 127, 5, 1, NULL) == GGUF_OK,
       "a later shard does not say what it is: %s", err.message);
    limits.max_name_size = 100;
    limits.max_dims = 3;
    ok(open_file("flux", 101, 1, 1, &limits) == GGUF_E_LIMIT &&
           open_file("flux", 9, 4, 1, &limits) == GGUF_E_LIMIT,
       "limits of the program stay: %s", err.message);
    for (size_t i = 0; (a = gg_image_row(i)); i++)
        ok(open_file(a->name, 127, 5, 1, NULL) == GGUF_OK,
           "architecture %s is one of them: %s", a->name, err.message);
    return done_testing();
}
