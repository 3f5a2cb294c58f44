/* check-pretok.c - where texts are cut into words */
#include "config.h"
#include "base/compiler.h"
#include "base/str.h"
#include "tests/tap.h"
#include "vocab/pretok.h"

/* The first word's size, the others' are not looked at. */
static enum gguf_status first_word(void *user, size_t off, size_t size,
                                   struct gguf_error *err)
{
    (void)err;
    if (!off)
        *(size_t *)user = size;
    return GGUF_OK;
}

/* Whether a blank stands alone before the code point and a letter. */
static bool stands_alone(const struct gg_pretok *p, uint32_t cp)
{
    char text[8] = " ";
    size_t size = 1 + gg_str_utf8_encode(cp, text + 1), first = 0;
    text[size++] = 'y';
    if (gg_pretok_split(p, text, size, first_word, &first, NULL) != GGUF_OK)
        abort();
    return first == 1;
}

/* A blank goes with what follows unless that is white space, which is what
 * Unicode (since 6.3) says. */
static void check_white_space(void)
{
    static const uint32_t white[] = { 9,      0xb,    0xc,    0x85,   0xa0,
                                      0x1680, 0x2000, 0x200a, 0x2028, 0x2029,
                                      0x202f, 0x205f, 0x3000 };
    static const uint32_t not_white[] = { 8,      0x1c,   0x1f,  0x180e,
                                          0x200b, 0x2060, 0xfeff };
    static const char *const names[] = { "gpt-2",  "qwen2",     "llama-bpe",
                                         "falcon", "starcoder", "default" };
    for (size_t k = 0; k < GG_LEN(names); k++) {
        struct gg_pretok *p;
        bool good = true;
        if (gg_pretok_create(&p, gg_str_z(names[k]), NULL, NULL) != GGUF_OK)
            abort();
        for (size_t i = 0; i < GG_LEN(white); i++)
            good = good && stands_alone(p, white[i]);
        for (size_t i = 0; i < GG_LEN(not_white); i++)
            good = good && !stands_alone(p, not_white[i]);
        ok(good, "%s: white space is what Unicode says", names[k]);
        gg_pretok_destroy(p);
    }
}

int main(void)
{
    check_white_space();
    return done_testing();
}
