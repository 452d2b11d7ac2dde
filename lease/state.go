package lease

import (
	"maps"
	"slices"
	"strings"
	"time"

	"sublet/report"
	"sublet/vnet"
)

// Report takes in what an agent says of its host. Most of thousands of reports
// are signs of life and change nothing.
func (b *Book) Report(now time.Time, r report.Report) error {
	if err := b.TakeReport(now, r); err != nil || !b.news {
		return err
	}
	return b.Tick(now)
}

// TakeReport takes in what an agent says of its host, without the Tick that follows from
// News: one does for the reports of many hosts.
func (b *Book) TakeReport(now time.Time, r report.Report) error {
	b.news = b.rollout.Report(now, r) || b.news
	b.noteRepairs(now, r)
	if b.updateCarriers(r) {
		return b.failover(now)
	}
	return nil
}

// News says whether hosts told what no Tick has followed from yet.
func (b *Book) News() bool { return b.news }

// noteRepairs takes in what an agent repaired of leases on its host.
func (b *Book) noteRepairs(now time.Time, r report.Report) {
	for _, repair := range r.Repairs {
		e := b.entries[repair.Lease]
		if e == nil || !e.onHosts() || !slices.Contains(e.hosts, r.Host) {
			continue
		}
		done := vnet.Repairs{}
		if e.Repairs != nil {
			done = *e.Repairs
		}
		e.Repairs = &vnet.Repairs{Count: done.Count + repair.Count, Last: string(r.Host) + ": " + repair.Text, Time: now.Round(0).UTC()}
		b.touch(e)
	}
}

// Seen says that a host's agent is alive though it has nothing to report,
// such as while it asks for its plan.
func (b *Book) Seen(now time.Time, host vnet.HostID) { b.rollout.Seen(now, host) }

// SetLiveness says how long a host may be silent before it is presumed dead
// and blocks nobody any more; rollout.DefaultLiveness at first.
func (b *Book) SetLiveness(d time.Duration) { b.rollout.SetLiveness(d) }

// updateStates sets the state of active leases by what their hosts say.
func (b *Book) updateStates(now time.Time) {
	awaiting := b.rollout.Awaiting(now) // of all hosts: once, not for each lease
	for _, e := range b.active {
		b.updateState(now, e, awaiting)
	}
}

// updateState sets the state of a lease.
//
//   - It runs when each of its hosts has gone through a plan that holds all of
//     the running stage, without an error, and its nodes reach each other. Rates
//     that change because other leases come or go leave it running.
//   - Errors, and what does not carry, make a running one degraded.
//   - It has failed when errors, or the silence of a host that has still to
//     build it, last longer than FailAfter. What it booked stays booked, its
//     hosts go on trying, and it runs when they succeed.
//   - A paused one is paused when each host has frozen its nodes.
//   - What is built and only does not carry for so long is degraded, not failed:
//     the tenant may be the cause, and can use the rest. Machines have
//     StartOfMachines for it.
func (b *Book) updateState(now time.Time, e *entry, awaiting []vnet.HostID) {
	if e.Lost != nil {
		b.updateLost(now, e)
		return
	}
	if !e.onHosts() {
		return
	}
	f := b.findings(now, e)
	state, message := e.stateFrom(f)
	e.why = message
	if e.handover.ready = state == vnet.Running && b.verifies(e); e.handover.ready {
		state, message = e.handover.state()
	}
	if len(awaiting) > 0 && len(f.missing) > 0 && len(f.problems) == 0 {
		message += "; nothing new is built before the operator adopts " + list(awaiting)
	}
	if b.stuck(now, e, f) {
		state = f.giveUp()
	}
	unheard := b.rollout.Unheard(now, e.hosts)
	silent := slices.DeleteFunc(slices.Clone(f.silent), func(h vnet.HostID) bool { return slices.Contains(unheard, h) })
	if len(silent) > 0 {
		message = strings.TrimPrefix(message+"; no sign of life from "+list(silent), "; ")
	}
	if len(unheard) > 0 {
		message = strings.TrimPrefix(message+"; no agent heard of since the server started on "+list(unheard), "; ")
	}
	if e.moving() && e.Move.Form != nil {
		message = strings.TrimPrefix(message+"; is given another form", "; ")
	} else if e.copying() {
		message = strings.TrimPrefix(message+"; what its nodes keep is copied to other hosts: "+brief(carried(e.Request, e.Move.From, e.Mapping)), "; ")
	} else if e.moving() {
		message = strings.TrimPrefix(message+"; "+movingWords(e.Move, e.Mapping), "; ")
	}
	if state != e.State {
		e.Lease = e.Metered(now)
	}
	if state.Up() && e.Life.Ran.IsZero() {
		e.Life.Ran = now.Round(0).UTC()
		b.touch(e)
	}
	b.setState(e, state, message)
}

// findings are what the hosts of an active lease say of it.
type findings struct {
	problems        []string // what they could not do
	cuts            []string // what does not carry, or is not known to before it did
	missing, silent []vnet.HostID
}

func (b *Book) findings(now time.Time, e *entry) findings {
	f := findings{
		problems: b.rollout.Errors(e.ID(), e.hosts), cuts: b.rollout.Cuts(e.ID(), e.hosts),
		missing: b.rollout.Missing(e.ID(), e.hosts), silent: b.rollout.Silent(now, e.hosts),
	}
	if e.Paused != nil {
		f.cuts = nil // who stands still answers nobody
		return f
	}
	if e.State != vnet.Running { // else an agent started anew
		f.cuts = append(f.cuts, b.rollout.Waits(e.ID(), e.hosts)...)
	}
	return f
}

// stateFrom is the state that follows from findings. A paused lease is paused where
// another would run.
func (e *entry) stateFrom(f findings) (vnet.State, string) {
	if e.Paused == nil {
		return f.next(e.State, e.why)
	}
	before := e.State
	if before == vnet.Paused {
		before = vnet.Running
	}
	state, message := f.next(before, e.why)
	if state.Up() {
		state = vnet.Paused
	}
	return state, message
}

// next gives the state that follows one with a message, and why. What was
// degraded stays so until all hosts have said that it is not: after a restart
// of the server none has said anything.
func (f findings) next(before vnet.State, said string) (state vnet.State, message string) {
	wrong := brief(append(f.problems, f.cuts...))
	switch {
	case wrong == "" && (len(f.missing) == 0 || before == vnet.Running):
		return vnet.Running, ""
	case wrong != "" && before.Up():
		return vnet.Degraded, wrong
	case wrong != "" && before == vnet.Failed && len(f.problems) == 0 && len(f.missing) == 0:
		return vnet.Degraded, wrong
	case wrong != "":
		return before, wrong
	case before == vnet.Degraded:
		return before, said
	case f.stuck(before):
		return before, "waiting for " + list(f.missing)
	}
	return vnet.Deploying, "waiting for " + list(f.missing)
}

// stuck says that a lease does not come nearer to running.
func (f findings) stuck(before vnet.State) bool {
	return len(f.problems) > 0 || !before.Holds() && (len(f.cuts) > 0 || overlap(f.missing, f.silent))
}

// giveUp is the state of a lease that has been stuck for too long.
func (f findings) giveUp() vnet.State {
	if len(f.problems) == 0 && len(f.missing) == 0 {
		return vnet.Degraded
	}
	return vnet.Failed
}

// updateLost says at once what cannot be carried, and why.
func (b *Book) updateLost(now time.Time, e *entry) {
	state := vnet.Failed
	if e.State == vnet.Booked {
		state = vnet.Booked
	} else if e.State != state {
		e.Lease = e.Metered(now)
	}
	b.setState(e, state, brief(e.Lost.Reasons))
}

// stuck notes since when a lease is stuck, and says whether that is too long.
func (b *Book) stuck(now time.Time, e *entry, f findings) bool {
	switch {
	case !f.stuck(e.State):
		e.failing = time.Time{}
		return false
	case e.failing.IsZero():
		e.failing = now
	}
	e.patience = b.FailAfter
	if f.giveUp() == vnet.Degraded && e.Life.Ran.IsZero() && slices.ContainsFunc(e.Request.At(e.Stage).Nodes, vnet.VirtualNode.Machine) {
		e.patience = max(e.patience, StartOfMachines)
	}
	return now.Sub(e.failing) >= e.patience
}

// StartOfMachines is how long a network that only waits for what does not carry
// yet is not called degraded, if it has machines: in software a distribution
// takes minutes to start.
const StartOfMachines = 5 * time.Minute

func overlap(a, b []vnet.HostID) bool {
	return slices.ContainsFunc(a, func(h vnet.HostID) bool { return slices.Contains(b, h) })
}

func (b *Book) setState(e *entry, state vnet.State, message string) {
	if e.State == state && e.Message == message {
		return
	}
	e.State, e.Message = state, message
	b.touch(e)
}

// movingWords says what of a lease moves, and whether others need its room.
func movingWords(m *vnet.Move, to vnet.Mapping) string {
	words := "links move to other paths"
	if !maps.Equal(m.From.Nodes, to.Nodes) {
		words = "nodes, routers or switches move to other hosts, and their links with them"
	}
	if m.For != 0 {
		words += " to make room"
	}
	return words
}
