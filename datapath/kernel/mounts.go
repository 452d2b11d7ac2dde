package kernel

import (
	"fmt"
	"os"
	"strings"
)

// Tables of mounts: this process's, and those of the machine's first one.
const (
	OwnMounts   = "/proc/self/mountinfo"
	FirstMounts = "/proc/1/mountinfo"
)

// Mount is a line of a table of mounts (proc_pid_mountinfo(5)).
type Mount struct {
	Root    string // what of the file system is mounted
	Point   string // where
	Type    string // of the file system
	Options string // of the file system, with commas between them
}

// Mounts reads a table of mounts in the order in which they were made.
func Mounts(table string) (mounts []Mount, err error) {
	text, err := os.ReadFile(table)
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if m, ok := parseMount(line); ok {
			mounts = append(mounts, m)
		}
	}
	return mounts, nil
}

// unescape writes blanks and the like as they are in names.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// parseMount reads a line: fields by position, then " - " and those of the file
// system, since there may be any number of optional ones before. The device in
// the middle may be empty.
func parseMount(line string) (m Mount, ok bool) {
	before, after, _ := strings.Cut(line, " - ")
	fields, fs := strings.Fields(before), strings.Fields(after)
	if len(fields) < 5 || len(fs) == 0 {
		return m, false
	}
	return Mount{Root: unescape.Replace(fields[3]), Point: unescape.Replace(fields[4]), Type: fs[0], Options: fs[len(fs)-1]}, true
}

// Within says whether a mount is at a path or below.
func (m Mount) Within(path string) bool {
	return m.Point == path || strings.HasPrefix(m.Point, path+"/")
}
