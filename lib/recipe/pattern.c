/* SPDX-License-Identifier: MIT */
/* pattern.c - regular expressions on tensor names, with PCRE2 */
#include "config.h"
#include "recipe/pattern.h"
#include "base/mem.h"
#include "base/str.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

enum {
    MAX_PATTERN = 1000,
    MAX_STEPS = 100000, /* a name has up to 64 bytes: sensible patterns take
                         * hundreds of steps */
    MAX_HEAP = 1024,    /* KiB of heap for a search */
};

struct gg_pattern {
    const struct gguf_allocator *allocator;
    pcre2_general_context *general;
    pcre2_match_context *limits;
    pcre2_code *code;
    size_t size;
    char text[];
};

static void *re_alloc(PCRE2_SIZE size, void *user)
{
    return gg_mem_alloc(user, size);
}

static void re_free(void *ptr, void *user)
{
    gg_mem_free(user, ptr);
}

static enum gguf_status compile_pattern(struct gg_pattern *p,
                                        struct gguf_error *err)
{
    void *user = (void *)(uintptr_t)p->allocator;
    struct gg_str_esc esc;
    PCRE2_UCHAR why[120];
    PCRE2_SIZE at;
    int rc;

    p->general = pcre2_general_context_create(re_alloc, re_free, user);
    pcre2_compile_context *cc =
        p->general ? pcre2_compile_context_create(p->general) : NULL;
    p->limits = p->general ? pcre2_match_context_create(p->general) : NULL;
    if (!cc || !p->limits) {
        pcre2_compile_context_free(cc);
        return gg_error_set_nomem(err, sizeof *p);
    }
    pcre2_set_match_limit(p->limits, MAX_STEPS);
    pcre2_set_heap_limit(p->limits, MAX_HEAP);
    p->code = pcre2_compile(
        (PCRE2_SPTR)p->text, p->size,
        PCRE2_CASELESS | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_UTF, &rc, &at, cc);
    pcre2_compile_context_free(cc);
    if (p->code)
        return GGUF_OK;
    struct gguf_str text = { p->text, p->size };
    pcre2_get_error_message(rc, why, sizeof why);
    if (rc == PCRE2_ERROR_HEAP_FAILED)
        return gg_error_set(err, GGUF_E_NOMEM, GGUF_NO_OFFSET,
                            "no memory for pattern '%s'",
                            gg_str_esc(&esc, text));
    return gg_error_set(err, GGUF_E_FORMAT, GGUF_NO_OFFSET,
                        "pattern '%s': %s at its byte %zu%s",
                        gg_str_esc(&esc, text), (char *)why, (size_t)at,
                        *p->text == '*' ? "; in a regular expression '.*' "
                                          "stands for any text"
                                        : "");
}

enum gguf_status gg_pattern_create(struct gg_pattern **out,
                                   struct gguf_str text,
                                   const struct gguf_allocator *a,
                                   struct gguf_error *err)
{
    struct gg_pattern *p;
    struct gg_str_esc esc;
    *out = NULL;
    if (text.size > MAX_PATTERN)
        return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                            "pattern of %zu bytes, limit is %d", text.size,
                            MAX_PATTERN);
    if (!text.size || memchr(text.data, 0, text.size))
        return gg_error_set(err, GGUF_E_FORMAT, GGUF_NO_OFFSET,
                            "pattern '%s' is empty or has a NUL byte",
                            gg_str_esc(&esc, text));
    p = gg_mem_alloc_zero(a, 1, sizeof *p + text.size);
    if (!p)
        return gg_error_set_nomem(err, sizeof *p + text.size);
    p->allocator = a;
    p->size = text.size;
    memcpy(p->text, text.data, text.size);
    enum gguf_status st = compile_pattern(p, err);
    if (st != GGUF_OK) {
        gg_pattern_destroy(p);
        return st;
    }
    *out = p;
    return GGUF_OK;
}

void gg_pattern_destroy(struct gg_pattern *p)
{
    if (!p)
        return;
    pcre2_code_free(p->code);
    pcre2_match_context_free(p->limits);
    pcre2_general_context_free(p->general);
    gg_mem_free(p->allocator, p);
}

enum gguf_status gg_pattern_match(const struct gg_pattern *p, const char *name,
                                  bool *found, struct gguf_error *err)
{
    struct gg_str_esc esc, esc_name;
    pcre2_match_data *data = pcre2_match_data_create(1, p->general);
    *found = false;
    if (!data)
        return gg_error_set_nomem(err, sizeof *p);
    int rc = pcre2_match(p->code, (PCRE2_SPTR)name, strlen(name), 0, 0, data,
                         p->limits);
    pcre2_match_data_free(data);
    *found = rc >= 0;
    if (rc >= 0 || rc == PCRE2_ERROR_NOMATCH)
        return GGUF_OK;
    struct gguf_str text = { p->text, p->size };
    if (rc == PCRE2_ERROR_NOMEMORY)
        return gg_error_set(err, GGUF_E_NOMEM, GGUF_NO_OFFSET,
                            "no memory for pattern '%s'",
                            gg_str_esc(&esc, text));
    return gg_error_set(err, GGUF_E_LIMIT, GGUF_NO_OFFSET,
                        "pattern '%s' takes too many steps on tensor '%s'",
                        gg_str_esc(&esc, text),
                        gg_str_esc(&esc_name, gg_str_z(name)));
}
