/* SPDX-License-Identifier: MIT */
/* decompress.c - decompressing text, and refusing other files */
#include "config.h"
#include "tools/common/decompress.h"
#include "tools/common/msg.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#if HAVE_LZMA
#include <lzma.h>
#endif
#if HAVE_ZSTD
#include <zstd.h>
#endif

/* Output of a decompression. */
struct out {
    const char *path;
    uint64_t limit;
    char *p;
    size_t n, room;
};

#if HAVE_LZMA || HAVE_ZSTD
/* Make room for at least one more byte, but for at most one byte above the
 * limit. */
static bool grow_output(struct out *o)
{
    if (o->n > o->limit)
        return msg_error(o->path,
                         "has more than %" PRIu64
                         " bytes when unpacked; --max-text "
                         "allows more",
                         o->limit);
    if (o->n < o->room)
        return true;
    uint64_t room = o->room ? 2 * (uint64_t)o->room : (uint64_t)1 << 20;
    if (room > o->limit + 1)
        room = o->limit + 1;
    o->p = msg_must(realloc(o->p, (size_t)room));
    o->room = (size_t)room;
    return true;
}
#endif

#if HAVE_LZMA
static bool unpack_xz(struct out *o, const char *data, size_t size)
{
    /* 256 MiB: more than any preset of xz needs */
    lzma_stream s = LZMA_STREAM_INIT;
    lzma_ret r =
        lzma_stream_decoder(&s, (uint64_t)256 << 20, LZMA_CONCATENATED);
    bool good = true;
    s.next_in = (const uint8_t *)data;
    s.avail_in = size;
    while (r == LZMA_OK && (good = grow_output(o))) {
        const size_t room = o->room - o->n;
        s.next_out = (uint8_t *)o->p + o->n;
        s.avail_out = room;
        r = lzma_code(&s, LZMA_FINISH);
        o->n += room - s.avail_out;
    }
    lzma_end(&s);
    if (good && r != LZMA_STREAM_END)
        msg_error(o->path, "cannot be unpacked: %s",
                  r == LZMA_BUF_ERROR        ? "the xz data is cut off"
                  : r == LZMA_MEM_ERROR      ? "out of memory"
                  : r == LZMA_MEMLIMIT_ERROR ? "it takes more than 256 MiB"
                                             : "the xz data is damaged");
    return good && r == LZMA_STREAM_END;
}
#else
#define unpack_xz NULL
#endif

#if HAVE_ZSTD
static bool unpack_zstd(struct out *o, const char *data, size_t size)
{
    ZSTD_DStream *s = msg_must(ZSTD_createDStream());
    ZSTD_inBuffer in = { data, size, 0 };
    size_t left = ZSTD_initDStream(s);
    bool good = true;
    /* left is 0 at the end of a frame; another frame may follow */
    while (!ZSTD_isError(left) && (good = grow_output(o))) {
        ZSTD_outBuffer out = { o->p + o->n, o->room - o->n, 0 };
        left = ZSTD_decompressStream(s, &out, &in);
        o->n += out.pos;
        if (in.pos == in.size && (!left || out.pos < out.size))
            break;
    }
    ZSTD_freeDStream(s);
    if (good && left)
        msg_error(o->path, "cannot be unpacked: %s",
                  ZSTD_isError(left) ? ZSTD_getErrorName(left)
                                     : "the zstd data is cut off");
    return good && !left;
}
#else
#define unpack_zstd NULL
#endif

/* First bytes of files that are taken for text or contain text. Sources: the
 * descriptions of the formats (xz: "The .xz File Format", 2.1.1.1; zstd: RFC
 * 8878, 3.1.1; zip: APPNOTE 4.3.7). */
static const struct {
    const char *magic;
    size_t n;
    const char *is;
    bool (*unpack)(struct out *o, const char *data, size_t size);
    const char *by; /* library that decompresses it */
} forms[] = {
    { "\xfd"
      "7zXZ\0",
      6, "an xz file", unpack_xz, "liblzma" },
    { "\x28\xb5\x2f\xfd", 4, "a zstd file", unpack_zstd, "libzstd" },
    { "PK\3\4", 4, "a zip file", NULL, NULL },
    { "BZh91AY&SY", 10, "a bzip2 file", NULL, NULL },
    { "7z\xbc\xaf\x27\x1c", 6, "a 7-Zip file", NULL, NULL },
    { "\x04\x22\x4d\x18", 4, "an lz4 file", NULL, NULL },
    { "%PDF-", 5, "a PDF file", NULL, NULL },
    { "PAR1", 4, "a Parquet file", NULL, NULL },
    { "\x7f"
      "ELF",
      4, "a program", NULL, NULL },
    { "\x89PNG", 4, "a picture", NULL, NULL },
    { "GGUF", 4, "a GGUF file", NULL, NULL },
};

bool decompress_text(const char *path, uint64_t limit, char **data,
                     size_t *size)
{
    struct out o = { .path = path, .limit = limit };
    bool good = true;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (*size < forms[i].n ||
            memcmp(*data, forms[i].magic, forms[i].n) != 0)
            continue;
        good = forms[i].unpack != NULL;
        if (good)
            good = forms[i].unpack(&o, *data, *size);
        else if (forms[i].by)
            msg_error(path,
                      "is %s: this build cannot read it, one with %s "
                      "can",
                      forms[i].is, forms[i].by);
        else
            msg_error(path, "is %s, not a text", forms[i].is);
        free(*data);
        *data = good ? o.p : NULL;
        *size = o.n;
        if (!good)
            free(o.p);
        break;
    }
    return good;
}
