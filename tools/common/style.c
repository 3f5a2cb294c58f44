/* SPDX-License-Identifier: MIT */
/* style.c - bold and coloured text on a terminal, and its width */
#include "config.h"
#include "tools/common/style.h"
#include "base/os/os_program.h"

#include <stdlib.h>

static bool styled, no_terminal;

bool style_on_terminal(void)
{
    return !no_terminal && gg_os_terminal_is(GG_OS_STDOUT);
}

void style_no_terminal(void)
{
    no_terminal = true;
}

/* The convention of no-color.org: NO_COLOR counts if it is not empty. */
static bool is_wanted(void)
{
    const char *no = getenv("NO_COLOR");
    return !no_terminal && gg_os_terminal_has_colours(GG_OS_STDOUT) &&
           !(no && *no);
}

void style_init(enum style_when when)
{
    styled = when == STYLE_ALWAYS || (when == STYLE_AUTO && is_wanted());
}

int style_columns(int fd)
{
    const int columns = gg_os_terminal_columns(fd);
    return columns > 0 ? columns : 80;
}

const char *style(enum style s)
{
    static const char *const code[] = {
        [STYLE_PLAIN] = "\033[0m",      [STYLE_TITLE] = "\033[1;36m",
        [STYLE_HEADING] = "\033[1m",    [STYLE_ERROR] = "\033[1;31m",
        [STYLE_WARNING] = "\033[1;33m", [STYLE_NOTE] = "\033[36m",
    };
    return styled ? code[s] : "";
}
