/* SPDX-License-Identifier: MIT */
/* option_hint.c - hints at the option that helps after an error */
#include "config.h"
#include "tools/common/option_hint.h"
#include "tools/common/msg.h"
#include "tools/common/remote.h"
#include "tools/common/text.h"
#include "base/os/os.h"

#include <gguf/file.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Words beside the number in messages about limits. */
static const struct {
    const char *words, *limit;
    bool before; /* the number comes before the words */
} rows[] = {
    { " keys at byte", "kv", true },
    { " tensors at byte", "tensors", true },
    { "tensor name length ", "name-size", false },
    { "key length ", "key-size", false },
    { "string length ", "str-size", false },
    { "array items ", "array-items", false },
    { "arrays in arrays, depth ", "depth", false },
    { "array of depth ", "depth", false },
    { " dimensions at byte", "dims", true },
    { "the header has at least ", "header", false },
};

const char *hint_limit(const struct gguf_error *err, char *out, size_t size)
{
    *out = '\0';
    if (err->status != GGUF_E_LIMIT || !strstr(err->message, "limit is"))
        return out;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct gguf_limits limits = GGUF_INIT(struct gguf_limits);
        const char *at = strstr(err->message, rows[i].words);
        if (!at)
            continue;
        const char *number = rows[i].before ? at : at + strlen(rows[i].words);
        while (rows[i].before && number > err->message && number[-1] >= '0' &&
               number[-1] <= '9')
            number--;
        const uint64_t value = strtoull(number, NULL, 10);
        if (gguf_limits_set(&limits, rows[i].limit, value, NULL) == GGUF_OK)
            snprintf(out, size, " (--limit %s=%" PRIu64 " allows it)",
                     rows[i].limit, value);
        break;
    }
    return out;
}

const char *hint_repository(const char *path, char *out, size_t size)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnop"
                                  "qrstuvwxyz0123456789-_.";
    const size_t owner = path ? strspn(path, letters) : 0;
    const size_t name =
        owner && path[owner] == '/' ? strspn(path + owner + 1, letters) : 0;
    *out = '\0';
    if (name && !path[owner + 1 + name] && *path != '.' &&
        !strstr(path, ".gguf") && gg_os_find(path) != 0)
        snprintf(out, size, "; the repository on Hugging Face is hf://%.150s",
                 path);
    return out;
}

const char *hint_adapter(const char *path)
{
    struct text name = { NULL, 0, 0 };
    text_addf(&name, "%s/adapter_config.json", path);
    const bool is = gg_os_find(name.s) == 0;
    text_fini(&name);
    return is ? "; gguf-convert --base MODEL makes a GGUF file of the adapter "
                "in it"
              : "";
}

void hint_resume(const char *in, const char *out, enum gguf_status st,
                 bool with)
{
    const bool broke = st == GGUF_E_IO || st == GGUF_E_TRUNCATED;
    struct text journal = { NULL, 0, 0 };
    if (!out)
        return;
    text_addf(&journal, "%s.resume", out);
    if (with && gg_os_find(journal.s) == 0 &&
        (broke || st == GGUF_E_CANCELLED || st == GGUF_E_NOSPACE))
        msg_info(out,
                 "the complete part is kept: the same command continues from "
                 "there");
    else if (!with && (st == GGUF_E_CANCELLED || (broke && remote_is_url(in))))
        msg_info(out, "nothing is kept; with --resume the complete part would "
                      "be kept for the next run");
    text_fini(&journal);
}
