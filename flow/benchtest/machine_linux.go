package benchtest

import (
	"fmt"
	"syscall"
)

func fileSystem(dir string) string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "unknown file system"
	}
	names := map[int64]string{0xEF53: "ext4", 0x58465342: "xfs", 0x9123683E: "btrfs", 0x01021994: "tmpfs", 0x794C7630: "overlayfs"}
	if name, ok := names[int64(s.Type)]; ok { //nolint:unconvert // of 32 bits on machines of 32
		return name
	}
	return fmt.Sprintf("file system %#x", s.Type)
}
