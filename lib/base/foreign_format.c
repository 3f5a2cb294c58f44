/* SPDX-License-Identifier: MIT */
/* foreign_format.c - recognize files of another format than expected */
#include "config.h"
#include "base/foreign_format.h"
#include "base/compiler.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define PICKLE "a pickle of Python, such as an older PyTorch checkpoint"
#define PAGE   "a web page"
#define TOKEN  "the answer of a server that wants a token"
#define ABSENT "the answer of a server without this file"

static const struct {
    size_t off;
    const char *bytes;
    size_t n;
    const char *is;
    enum gg_foreign_format_but own;
} binaries[] = {
    { 0, "GGUF", 4, "a GGUF file", GG_FOREIGN_BUT_GGUF },
    { 4, "\0\0\0\0{\"", 6, "a safetensors file", GG_FOREIGN_BUT_SAFETENSORS },
    { 0, "PK\003\004", 4, "a ZIP archive or PyTorch checkpoint", 0 },
    { 0, "\200\002", 2, PICKLE, 0 },
    { 0, "\200\003", 2, PICKLE, 0 },
    { 0, "\200\004\225", 3, PICKLE, 0 },
    { 0, "\200\005\225", 3, PICKLE, 0 },
    { 0, "\211HDF", 4, "an HDF5 file of Keras or TensorFlow", 0 },
    { 0, "lmgg", 4, "a GGML file from before GGUF", 0 },
    { 0, "fmgg", 4, "a GGMF file from before GGUF", 0 },
    { 0, "tjgg", 4, "a GGJT file from before GGUF", 0 },
    { 0, "algg", 4, "a GGLA adapter from before GGUF", 0 },
    { 0, "\037\213", 2, "a file compressed by gzip", 0 },
    { 0, "\3757zXZ", 5, "a file compressed by xz", 0 },
    { 0, "\x28\xb5\x2f\xfd", 4, "a file compressed by zstd", 0 },
    { 0, "BZh91AY&SY", 10, "a file compressed by bzip2", 0 },
    { 0, "7z\274\257\047\034", 6, "a 7-Zip archive", 0 },
    { 0, "\223NUMPY", 6, "an array of NumPy", 0 },
    { 0, "%PDF-", 5, "a PDF file", 0 },
    { 0, "\211PNG", 4, "a picture", 0 },
    { 257, "ustar", 5, "a tar archive", 0 },
};

/* First words of texts, after a byte-order mark and white space. Pointers come
 * first. Downloads keep the body of an error message by default. */
static const struct {
    const char *begin, *is;
} texts[] = {
    { "version https://git-lfs",
      "a Git LFS pointer: the file itself was not downloaded (git lfs pull)" },
    { "<!DOCTYPE", PAGE },
    { "<!doctype", PAGE },
    { "<html", PAGE },
    { "<HTML", PAGE },
    { "<?xml", "an XML text, such as a server's error" },
    { "{\"error\"", "a server's error" },
    { "Entry not found", ABSENT },
    { "404: Not Found", ABSENT },
    { "Not Found", ABSENT },
    { "Repository not found", ABSENT },
    { "Invalid username or password", TOKEN },
    { "Access to model", TOKEN },
};

static bool begins_with(const char *p, uint64_t size, const char *begin,
                        size_t n)
{
    return size >= n && !memcmp(p, begin, n);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

const char *gg_foreign_format_name(const void *data, uint64_t size,
                                   enum gg_foreign_format_but but)
{
    const char *p = data;
    const bool prose = but == GG_FOREIGN_BUT_PROSE;
    for (size_t i = 0; i < GG_LEN(binaries) && !prose; i++)
        if (size > binaries[i].off &&
            begins_with(p + binaries[i].off, size - binaries[i].off,
                        binaries[i].bytes, binaries[i].n))
            return but && binaries[i].own == but ? NULL : binaries[i].is;
    if (begins_with(p, size, "\357\273\277", 3)) {
        p += 3;
        size -= 3;
    }
    for (; size && is_blank(*p); size--)
        p++;
    for (size_t i = 0; i < (prose ? 1 : GG_LEN(texts)); i++)
        if (begins_with(p, size, texts[i].begin, strlen(texts[i].begin)))
            return texts[i].is;
    return NULL;
}
