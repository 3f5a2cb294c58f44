/* room.h - file systems on which a copy takes no room */
#ifndef GG_BASE_ROOM_H
#define GG_BASE_ROOM_H

#include <stdbool.h>

/* Do copies of this file share its blocks, so that free room says little? By
 * the magic numbers of statfs(2): Btrfs, XFS, bcachefs, ZFS, OCFS2, and what
 * copies on a server, NFS and SMB. */
bool gg_room_is_shared(const char *path);

#endif
