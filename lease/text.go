package lease

import (
	"fmt"
	"strings"
	"time"

	"sublet/embed/calendar"
	"sublet/vnet"
)

// brief joins problems for one line; a lease's hosts may have thousands.
func brief(problems []string) string {
	const most = 3
	if more := len(problems) - most; more > 0 {
		return strings.Join(problems[:most], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(problems, "; ")
}

// list names some hosts for people.
func list(hosts []vnet.HostID) string {
	const most = 5
	var b strings.Builder
	for i, h := range hosts {
		if i == most {
			fmt.Fprintf(&b, " and %d more", len(hosts)-most)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(h))
	}
	return b.String()
}

// stamp prints a time for people, to the second.
func stamp(t time.Time) string { return calendar.RoundUp(t).Format(time.RFC3339) }
