package bed

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// period is short, so that a process is not away for long.
const period = 10 * time.Millisecond

// Share bounds the processor time of a switch's process, in hundredths of a processor.
func (s *Switch) Share(percent int) error {
	g := s.bed.host.Group(s.Key)
	if !s.shared {
		s.shared = true
		s.bed.later(func() {
			if err := g.Remove(); err != nil {
				fmt.Fprintln(os.Stderr, "clean up:", err)
			}
		})
	}
	if err := errors.Join(g.Make(), g.SetQuota(period*time.Duration(percent)/100, period)); err != nil {
		return err
	}
	for _, pid := range s.Stations[0].Processes { // also where the limit has only just made the group
		if err := g.Add(pid); err != nil {
			return err
		}
	}
	return nil
}

// Used is the processor time that a switch's process takes while do runs. Share comes
// before.
func (s *Switch) Used(do func() error) (time.Duration, error) {
	g := s.bed.host.Group(s.Key)
	before, err := g.Used()
	if err != nil {
		return 0, err
	}
	err = do()
	after, err2 := g.Used()
	return after - before, errors.Join(err, err2)
}

// Queue gives a station's device a queue of so many frames, or none.
func (s *Switch) Queue(station, frames int) error {
	line := "tc qdisc replace dev eth0 root noqueue"
	if frames > 0 {
		line = fmt.Sprintf("tc qdisc replace dev eth0 root pfifo limit %d", frames)
	}
	return s.bed.in(fmt.Sprintf("%s.%d", s.Key, station), line)
}
