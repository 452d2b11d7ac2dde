package emulate

import (
	"fmt"
	"os"
	"strings"
)

// jiffies are the times of all processors since boot: idle, and in all.
type jiffies struct{ idle, all uint64 }

// readJiffies reads the first line of /proc/stat (proc_stat(5)): user, nice,
// system, idle, iowait, irq, softirq, steal; guests' are in user's.
func readJiffies() (j jiffies, err error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return j, err
	}
	line, _, _ := strings.Cut(string(text), "\n")
	var v [8]uint64
	if _, err := fmt.Sscanf(line, "cpu %d %d %d %d %d %d %d %d", &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]); err != nil {
		return j, fmt.Errorf("read /proc/stat: %w", err)
	}
	for _, n := range v {
		j.all += n
	}
	j.idle = v[3] + v[4]
	return j, nil
}

// idleSince is the part of the processors' time that nobody used.
func idleSince(before jiffies) (float64, error) {
	now, err := readJiffies()
	if err != nil || now.all == before.all {
		return 0, err
	}
	return float64(now.idle-before.idle) / float64(now.all-before.all), nil
}
