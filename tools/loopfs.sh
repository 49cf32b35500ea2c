#!/usr/bin/env bash
# Makes a small file system for tests that need a full disk.
#
#   tools/loopfs.sh mount [SIZE_MIB]   mounts one (default 2 MiB) and prints its path
#   tools/loopfs.sh umount PATH        unmounts it and removes the directory
#
# A tmpfs is tried first, then an ext4 image on a loop device.
# Exit status 77 (the customary "skipped") when this process may not mount.
set -euo pipefail

usage() {
  echo "usage: tools/loopfs.sh mount [SIZE_MIB] | umount PATH" >&2
  exit 2
}

mount_tmpfs() {
  mount -t tmpfs -o "size=$2m" smdebug-test "$1" 2> /dev/null
}

mount_loop() {
  command -v mkfs.ext4 > /dev/null || return 1
  truncate -s "$2M" "$1.img"
  mkfs.ext4 -q -F "$1.img" 2> /dev/null && mount -o loop "$1.img" "$1" 2> /dev/null
}

do_mount() {
  local size_mib=${1:-2}
  case $size_mib in
    '' | *[!0-9]* | 0*) usage ;;
  esac
  local dir
  dir=$(mktemp -d "${TMPDIR:-/tmp}/smdebug-loopfs.XXXXXX")
  if mount_tmpfs "$dir" "$size_mib" || mount_loop "$dir" "$size_mib"; then
    echo "$dir"
    return
  fi
  rmdir "$dir"
  rm -f "$dir.img"
  echo "loopfs: this process may not mount a file system, so disk-full tests cannot run." >&2
  exit 77
}

do_umount() {
  local dir=$1
  # Only what the mount mode made.
  case $(basename "$dir") in
    smdebug-loopfs.*) ;;
    *)
      echo "loopfs: not a file system made by this script: $dir" >&2
      exit 2
      ;;
  esac
  if mountpoint -q "$dir"; then
    umount "$dir"
  fi
  rmdir "$dir"
  rm -f "$dir.img"
}

case ${1:-} in
  mount) do_mount "${2:-}" ;;
  umount) [ $# -eq 2 ] || usage; do_umount "$2" ;;
  *) usage ;;
esac
