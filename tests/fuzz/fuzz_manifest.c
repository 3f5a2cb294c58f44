/* SPDX-License-Identifier: MIT */
/* fuzz_manifest.c - a manifest: a list of digests */
#include "config.h"
#include "gguf/digest.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct gguf_manifest *m;
    struct gguf_error err;
    if (gguf_manifest_parse(&m, (const char *)data, size, NULL, &err) !=
        GGUF_OK) {
        MUST(!m && err.message[0]);
        return 0;
    }
    for (size_t i = 0; i < gguf_manifest_n_entries(m); i++) {
        struct gguf_str name;
        char line[300];
        const struct gguf_digest *d = gguf_manifest_entry(m, i, &name);
        const struct gguf_digest *e = gguf_manifest_find(m, d->algo, name);
        MUST(e && gguf_digest_equal(d, e));
        struct gguf_str file = { "f", 1 };
        size_t n =
            gguf_manifest_format_tensor(line, sizeof line, d, file, name);
        MUST(n >= sizeof line || n == strlen(line) ||
             memchr(name.data, 0, name.size));
    }
    gguf_manifest_destroy(m);
    return 0;
}

void fuzz_make_seeds(void)
{
    seed_text("");
    seed_text("xxh64     f66e9cd66a4396a0  m.gguf:a\n"
              "sha1 59f79ecefd8125a996fdf419239051a7e99e5f20 m.gguf:a\n"
              "xxh3-128  29c03956cdaddb76c02b18920c812d41  m.gguf:a\n"
              "xxh64     5a54d3aad816f302  m.gguf\n");
    seed_text("xxh64 f66e9cd66a4396a0 x:y:a\n"
              "xxh64 f66e9cd66a4396a1 x:y:b");
    seed_text("xxh64 f66e9cd66a4396a0 x:a\r\n\r\nxxh64 F66E9CD66A4396A0 x:a");
    seed_text("xxh64 f66e9cd66a4396a x:a\n");
}
