package pin

import "time"

// load measures what cores have beside the processes of the loop, and lists them.
func (l *Loop) load(own map[int]bool, seconds float64) ([]int, error) {
	list, err := l.Machine.Cores()
	if err != nil {
		return nil, err
	}
	interrupts, err := l.Machine.Interrupts()
	if err != nil {
		return nil, err
	}
	others, err := l.Machine.Others(own)
	if err != nil {
		return nil, err
	}
	before := l.cores
	l.cores = make(map[int]*core)
	for _, n := range list {
		now := &core{interrupts: interrupts[n], others: others[n]}
		if was := before[n]; was != nil && seconds > 0 {
			now.soft = mean(was.soft, now.interrupts-was.interrupts, seconds)
			now.busy = mean(was.busy, grown(was.others, now.others), seconds)
		}
		l.cores[n] = now
	}
	return list, nil
}

// mean of a load and what was spent since, by halves.
func mean(before float64, spent time.Duration, seconds float64) float64 {
	return (before + max(0, spent.Seconds()/seconds)) / 2
}

// grown is what threads spent that were there before.
func grown(was, now map[int]time.Duration) (sum time.Duration) {
	for thread, spent := range now {
		if before, ok := was[thread]; ok && spent > before {
			sum += spent - before
		}
	}
	return sum
}

// busy is what cores carry whoever is put on them: others' threads that can run
// nowhere else, and interrupts. Packets that a process sends are handled in soft
// interrupts on its own core, in its own time: as much of a core's interrupts as the
// processes on it use may be theirs, would go along with them, and is not counted.
func (l *Loop) busy(cores []int, list []*process) []float64 {
	busy := make([]float64, len(cores))
	for i, n := range cores {
		own := 0.0
		for _, p := range list {
			if p.core == n {
				own += p.weight
			}
		}
		busy[i] = l.cores[n].busy + max(0, l.cores[n].soft-own)
	}
	return busy
}
