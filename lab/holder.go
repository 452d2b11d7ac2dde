package lab

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// holder names the process that has locked a directory, as /proc/locks tells
// (proc_locks(5)).
func holder(dir string) string {
	const unknown = "another lab command"
	var at syscall.Stat_t
	if err := syscall.Stat(dir, &at); err != nil {
		return unknown
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return unknown
	}
	inode := fmt.Sprintf(":%d", at.Ino)
	for line := range strings.Lines(string(locks)) {
		words := strings.Fields(line)
		if len(words) < 8 || words[1] != "FLOCK" || !strings.HasSuffix(words[5], inode) {
			continue
		}
		command, err := os.ReadFile("/proc/" + words[4] + "/cmdline")
		if err != nil || len(command) == 0 {
			return unknown
		}
		text := string(bytes.ReplaceAll(bytes.TrimRight(command, "\x00"), []byte{0}, []byte{' '}))
		return fmt.Sprintf("%q (process %s)", text, words[4])
	}
	return unknown
}
