/* fuzz_manifest.c - a list of digests from anywhere */
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
    for (size_t i = 0; i < gguf_manifest_n(m); i++) {
        struct gguf_str name;
        char line[300];
        const struct gguf_digest *d = gguf_manifest_entry(m, i, &name);
        const struct gguf_digest *e = gguf_manifest_find(m, d->algo, name);
        MUST(e && gguf_digest_equal(d, e));
        struct gguf_str file = { "f", 1 };
        size_t n = gguf_manifest_line(line, sizeof line, d, file, name);
        MUST(n >= sizeof line || n == strlen(line) ||
             memchr(name.data, 0, name.size));
    }
    gguf_manifest_destroy(m);
    return 0;
}
