/* SPDX-License-Identifier: MIT */
/* folder.c - makes small Hugging Face folders */
#include "config.h"
#include "tests/convert/folder.h"
#include "tests/scratch.h"

#include "base/bytes.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void bail_out(const char *what)
{
    printf("Bail out! %s: %s\n", what, strerror(errno));
    exit(99);
}

float folder_value(const char *name, uint64_t i)
{
    uint64_t h = UINT64_C(1469598103934665603); /* FNV-1a */
    const bool gain = strstr(name, "_gain.") != NULL;
    while (*name)
        h = (h ^ (uint8_t)*name++) * UINT64_C(1099511628211);
    h = (h ^ i) * UINT64_C(0x9E3779B97F4A7C15);
    h ^= h >> 29;
    h *= UINT64_C(0xBF58476D1CE4E5B9);
    const float x = (float)((int)(h >> 40 & 255) - 128) * 0x1p-9f; /* 8 bits */
    return gain ? fabsf(x) + 0x1p-9f : x;
}

void folder_begin(struct folder *f, const char *dir)
{
    snprintf(f->dir, sizeof f->dir, "%s", dir);
    f->n_tensors = 0;
    f->sparse = false;
    if (gg_os_make_folder(dir) != 0 && errno != EEXIST)
        bail_out(dir);
}

static FILE *create_file(const struct folder *f, const char *name)
{
    char path[400];
    snprintf(path, sizeof path, "%s/%s", f->dir, name);
    FILE *o = fopen(path, "wb");
    if (!o)
        bail_out(path);
    return o;
}

static void close_file(FILE *o)
{
    if (fclose(o) != 0)
        bail_out("writing");
}

void folder_text(const struct folder *f, const char *name, const char *text)
{
    FILE *o = create_file(f, name);
    fputs(text, o);
    close_file(o);
}

static void add_tensor(struct folder *f, const char *name, const char *sizes,
                       int il, int ie)
{
    struct folder_tensor *t = &f->tensor[f->n_tensors++];
    char *at = t->name;
    *t = (struct folder_tensor){ .n = 1 };
    for (; *name && *name != ' '; name++)
        at += *name == '%'   ? sprintf(at, "%d", il)
              : *name == '@' ? sprintf(at, "%d", ie)
                             : sprintf(at, "%c", *name);
    while (*sizes == ' ') {
        t->shape[t->n_dims] = strtoull(sizes + 1, (char **)&sizes, 10);
        t->n *= t->shape[t->n_dims++];
    }
}

void folder_tensors(struct folder *f, const char *lines, int n_layers,
                    int n_experts)
{
    for (const char *p = lines; *p;) {
        const size_t n = strcspn(p, "\n");
        const char *sizes = p + strcspn(p, " \n");
        const bool layer = memchr(p, '%', n), expert = memchr(p, '@', n);
        for (int il = 0; il < (layer ? n_layers : 1); il++)
            for (int ie = 0; ie < (expert ? n_experts : 1); ie++)
                add_tensor(f, p, sizes, il, ie);
        p += n + (p[n] == '\n');
    }
}

const struct folder_tensor *folder_find(const struct folder *f,
                                        const char *name)
{
    for (size_t i = 0; i < f->n_tensors; i++)
        if (!strcmp(f->tensor[i].name, name))
            return &f->tensor[i];
    return NULL;
}

/* Write every n_files-th tensor, beginning with number no. */
static void write_file(const struct folder *f, const char *name,
                       const char *dtype, int no, int n_files)
{
    const size_t width = strcmp(dtype, "F32") == 0 ? 4 : 2;
    static char header[1 << 18];
    size_t n =
        (size_t)sprintf(header, "{\"__metadata__\":{\"format\":\"pt\"}");
    uint64_t off = 0;
    for (size_t i = (size_t)no; i < f->n_tensors; i += (size_t)n_files) {
        const struct folder_tensor *t = &f->tensor[i];
        n += (size_t)sprintf(header + n,
                             ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", t->name,
                             dtype);
        for (unsigned d = 0; d < t->n_dims; d++)
            n += (size_t)sprintf(header + n, "%s%" PRIu64, d ? "," : "",
                                 t->shape[d]);
        n += (size_t)sprintf(header + n,
                             "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                             off, off + t->n * width);
        off += t->n * width;
    }
    header[n++] = '}';
    while (n % 8)
        header[n++] = ' ';
    FILE *o = create_file(f, name);
    uint8_t b[8];
    gg_bytes_store64le(b, n);
    fwrite(b, 1, 8, o);
    fwrite(header, 1, n, o);
    if (f->sparse &&
        (fflush(o) || ftruncate(fileno(o), (off_t)(8 + n + off)) != 0))
        bail_out(name);
    for (size_t i = (size_t)no; i < f->n_tensors && !f->sparse;
         i += (size_t)n_files)
        for (uint64_t k = 0; k < f->tensor[i].n; k++) {
            gg_bytes_store32le(
                b, gg_bytes_f32_bits(folder_value(f->tensor[i].name, k)));
            fwrite(b + 4 - width, 1, width, o);
        }
    close_file(o);
}

void folder_weights(const struct folder *f, const char *dtype, int n_files)
{
    char name[64];
    if (n_files == 1) {
        write_file(f, "model.safetensors", dtype, 0, 1);
        return;
    }
    FILE *o = create_file(f, "model.safetensors.index.json");
    fputs("{\"metadata\":{},\"weight_map\":{", o);
    for (size_t i = 0; i < f->n_tensors; i++)
        fprintf(o, "%s\"%s\":\"model-%05d-of-%05d.safetensors\"", i ? "," : "",
                f->tensor[i].name, (int)(i % (size_t)n_files) + 1, n_files);
    fputs("}}", o);
    close_file(o);
    for (int no = 0; no < n_files; no++) {
        snprintf(name, sizeof name, "model-%05d-of-%05d.safetensors", no + 1,
                 n_files);
        write_file(f, name, dtype, no, n_files);
    }
}

/* Write the letter of byte-level BPE (GPT-2) for a byte: the byte itself if
 * printable, else the next letter from U+0100 on. */
static void put_byte(FILE *o, int byte)
{
    int c = byte, n = 0;
    for (int b = 0; b <= byte; b++) {
        const bool same = (b >= '!' && b <= '~') || (b >= 0xa1 && b <= 0xac) ||
                          (b >= 0xae && b <= 0xff);
        if (b == byte)
            c = same ? b : 256 + n;
        n += !same;
    }
    fprintf(o, "\\u%04x", (unsigned)c);
}

void folder_bpe(const struct folder *f, bool pairs)
{
    FILE *o = create_file(f, "tokenizer.json");
    fputs("{\"version\":\"1.0\",\"added_tokens\":[{\"id\":258,\"content\":"
          "\"<|end|>\",\"special\":true}],\"normalizer\":null,"
          "\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{"
          "\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?i:'s|'t|'re|'ve|'m|"
          "'ll|'d)|[^\\\\r\\\\n\\\\p{L}\\\\p{N}]?\\\\p{L}+|\\\\p{N}| "
          "?[^\\\\s\\\\p{L}\\\\p{N}]+[\\\\r\\\\n]*|\\\\s*[\\\\r\\\\n]+|\\\\s+"
          "(?!\\\\S)|\\\\s+\"},\"behavior\":\"Isolated\",\"invert\":false},{"
          "\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":"
          "false}]},\"model\":{\"type\":\"BPE\",\"vocab\":{",
          o);
    for (int b = 0; b < 256; b++) {
        fputc('"', o);
        put_byte(o, b);
        fprintf(o, "\":%d,", b);
    }
    fprintf(o, "\"ab\":256,\"abc\":257},\"merges\":[%s]}}",
            pairs ? "[\"a\",\"b\"],[\"ab\",\"c\"]" : "\"a b\",\"ab c\"");
    close_file(o);
    folder_text(
        f, "tokenizer_config.json",
        "{\"bos_token\":null,\"eos_token\":{\"content\":\"<|end|>\"},"
        "\"add_bos_token\":false,\"model_max_length\":"
        "1000000000000000019884624838656,\"chat_template\":\"{{x}}\"}");
}
