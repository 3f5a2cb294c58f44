/* SPDX-License-Identifier: MIT */
/* fuzz_card.c - the model card: README.md with YAML at its front */
#include "config.h"
#include "convert/card/card.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
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
            if (gg_card_read_name(&n, &a, s, 1e9, &err) == GGUF_OK && n.name)
                MUST(gg_card_make_title(&a, n.name));
        }
    gg_mem_arena_fini(&a);
    return 0;
}

void fuzz_make_seeds(void)
{
    seed_text("---\nk: >-\n  [\n "
              "\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t\t"
              "b\n---\n");
    seed_text("---\nbase_model: a-b/C-7b1-v0.1-8x7B-Q4_K\ntags: [x, 'y', "
              "\"\\u00e9\"]\nlicense:\n- mit # x\n- a: b\n  c: d\nk: >-\n  "
              "a\n\n  b\n---\n");
    seed_text("# no front matter\n");
}
