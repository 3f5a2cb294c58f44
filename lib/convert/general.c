/* general.c - what a model is called */
#include "config.h"
#include "convert/convert.h"

#include "base/compiler.h"
#include "base/str.h"
#include "gguf/dtype.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Is it a version or a size: "v0.1", "8B"? Those keep their letters. */
static bool is_number(const char *p, size_t n)
{
    const size_t v = n > 1 && *p == 'v';
    return v < n && p[v] >= '0' && p[v] <= '9';
}

/* The folder's name as a title: '-' between words becomes a blank, and a word
 * of small letters begins with a large one, as llama.cpp's converter does. */
static void make_title(const char *path, char *out, size_t size)
{
    size_t end = strlen(path), begin, n = 0;
    while (end > 1 && path[end - 1] == '/')
        end--;
    for (begin = end; begin && path[begin - 1] != '/'; begin--)
        ;
    while (begin < end && n + 2 < size) {
        size_t k = 0;
        bool large = false;
        while (begin + k < end && path[begin + k] != '-' &&
               path[begin + k] != ' ') {
            large |= path[begin + k] >= 'A' && path[begin + k] <= 'Z';
            k++;
        }
        if (k && n)
            out[n++] = ' ';
        const bool change = k && !large && !is_number(path + begin, k);
        for (size_t i = 0; i < k && n + 1 < size; i++) {
            char ch = path[begin + i];
            if (!i && change && ch >= 'a' && ch <= 'z')
                ch = (char)(ch - 'a' + 'A');
            out[n++] = ch;
        }
        begin += k + 1;
    }
    out[n] = 0;
}

/* "5.8M", "27B": two digits at least. */
static void make_size(double n, char out[32])
{
    static const struct {
        double unit;
        const char *letter;
    } units[] = { { 1e12, "T" }, { 1e9, "B" }, { 1e6, "M" }, { 1e3, "K" } };
    size_t k = 0;
    while (k + 1 < GG_LEN(units) && n < units[k].unit)
        k++;
    const double x = n / units[k].unit;
    snprintf(out, 32, "%.*f%s", x < 9.5 ? 1 : 0, x, units[k].letter);
}

/* general.file_type: the type of most numbers of matrices. */
static uint32_t file_type(const struct gguf_convert *c)
{
    static const struct {
        uint32_t dtype, number;
    } types[] = { { GGUF_DTYPE_F32, 0 },
                  { GGUF_DTYPE_F16, 1 },
                  { GGUF_DTYPE_BF16, 32 } };
    double n[GG_LEN(types)] = { 0 };
    size_t most = 0;
    for (size_t i = 0; i < c->n_tensors; i++) {
        const struct gguf_convert_tensor *t = &c->tensor[i];
        for (size_t k = 0; k < GG_LEN(types); k++)
            if (t->n_dims > 1 && t->dtype == types[k].dtype)
                n[k] += (double)t->ne[0] * (double)t->ne[1] *
                        (double)t->ne[2] * (double)t->ne[3];
    }
    for (size_t k = 1; k < GG_LEN(types); k++)
        most = n[k] > n[most] ? k : most;
    return types[most].number;
}

enum gguf_status gg_convert_general(struct gguf_convert *c,
                                    struct gguf_error *err)
{
    char text[256];
    double n = 0;
    GG_TRY(gguf_meta_set_strz(c->meta, "general.architecture", c->arch->arch,
                              err));
    GG_TRY(gguf_meta_set_strz(c->meta, "general.type", "model", err));
    make_title(c->path, text, sizeof text);
    if (*text && gg_str_utf8_valid(text, strlen(text)))
        GG_TRY(gguf_meta_set_strz(c->meta, "general.name", text, err));
    for (size_t i = 0; i < c->n_tensors; i++) {
        const int64_t *ne = c->tensor[i].ne;
        n += (double)ne[0] * (double)ne[1] * (double)ne[2] * (double)ne[3];
    }
    GG_TRY(gguf_meta_set_u32(c->meta, "general.file_type", file_type(c), err));
    make_size(n, text);
    return gguf_meta_set_strz(c->meta, "general.size_label", text, err);
}
