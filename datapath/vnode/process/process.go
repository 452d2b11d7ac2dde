// Package process reads what /proc says of a process. It stands apart from datapath/vnode
// because its library takes memory in every program that has it, and the supervisor of
// each node is one.
package process

import (
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"sublet/report"
)

// Of reads a process, by its number outside.
func Of(pid int) (report.Process, error) {
	proc, err := procfs.NewProc(pid)
	if err != nil {
		return report.Process{}, err
	}
	stat, err := proc.Stat()
	if err != nil {
		return report.Process{}, err
	}
	began, err := stat.StartTime()
	if err != nil {
		return report.Process{}, err
	}
	arguments, err := proc.CmdLine()
	if err != nil || len(arguments) == 0 {
		arguments = []string{"[" + stat.Comm + "]"}
	}
	return report.Process{
		Command: strings.Join(arguments, " "), State: stat.State,
		CPU: int64(1000 * stat.CPUTime()), Memory: int64(stat.ResidentMemory()),
		Started: time.UnixMilli(int64(1000 * began)).UTC(),
	}, nil
}
