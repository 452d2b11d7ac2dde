package server

import (
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"sublet/lease/api"
	"sublet/report"
	"sublet/trust"
	"sublet/vnet"
)

// Bounds of what watching takes: at most 264 MiB for events that are kept, and
// one event more for each watcher.
const (
	mostWatchers         = 1024
	mostWatchersOfTenant = 16 // not of the operator
	mostFeeds            = 256
	feedBytes            = 1 << 20 // of a tenant's feed
	feedBytesOfAll       = 8 << 20
	keepFeed             = time.Minute // after its last watcher
	eventOverhead        = 128         // bytes that an event takes beside its text
	samplesOfEvent       = 500
)

// feed is what the watchers of one scope are told. Each feed has its own numbers,
// so that gaps do not show how much others are told.
type feed struct {
	scope    report.Scope
	id       string    // random: begins the ids of its events
	watchers int       // guarded by feeds.mu, as is
	left     time.Time // since when there are none

	mu   sync.Mutex
	ring *report.Ring[[]byte] // events as they are on the wire
	news chan struct{}        // closed and replaced with each event
}

func newFeed(scope report.Scope) *feed {
	size := feedBytes
	if scope == (report.Scope{}) {
		size = feedBytesOfAll
	}
	return &feed{scope: scope, id: rand.Text(), ring: report.NewRing[[]byte](size), news: make(chan struct{})}
}

// add appends an event. A value that cannot be encoded is a defect, and left out.
func (f *feed) add(name string, value any) {
	if data, err := json.Marshal(value); err == nil {
		f.addText(name, data)
	}
}

// addText appends an event of a line of JSON.
func (f *feed) addText(name string, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text := api.Event{Name: name, ID: f.idOf(f.ring.Last() + 1), Data: data}.Append(make([]byte, 0, len(data)+eventOverhead))
	f.ring.Add(text, len(text)+eventOverhead)
	close(f.news)
	f.news = make(chan struct{})
}

// next is the event after a number; 0: there is none yet, news is closed when
// there is. Not whole: it is not kept any more.
func (f *feed) next(after uint64) (text []byte, number uint64, whole bool, news <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, number, whole = f.ring.Next(after)
	return text, number, whole, f.news
}

func (f *feed) idOf(number uint64) string { return f.id + "-" + strconv.FormatUint(number, 10) }

// position is the number of an event's id; else that of the last event.
func (f *feed) position(id string) (number uint64, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	text, ours := strings.CutPrefix(id, f.id+"-")
	number, err := strconv.ParseUint(text, 10, 64)
	if ours && err == nil {
		if _, _, whole := f.ring.Next(number); whole {
			return number, true
		}
	}
	return f.ring.Last(), false
}

// feeds are those with watchers, and those that had some a short while ago.
type feeds struct {
	mu       sync.Mutex
	open     map[vnet.TenantID]*feed // "": everybody's
	watchers map[vnet.TenantID]int   // by account
	total    int
	begun    chan struct{} // has room for one: there may be a first watcher
}

func newFeeds() *feeds {
	return &feeds{open: make(map[vnet.TenantID]*feed), watchers: make(map[vnet.TenantID]int), begun: make(chan struct{}, 1)}
}

// enter takes on a watcher of a tenant's feed, "" of everybody's; leave must be
// called after it.
func (f *feeds) enter(c trust.Caller, tenant vnet.TenantID, now time.Time) (one *feed, leave func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clean(now)
	switch {
	case f.watchers[c.Account] >= mostWatchersOfTenant && !c.Operator:
		return nil, nil, tooMany("%s watches %d times, the most at a time", c.Name, mostWatchersOfTenant)
	case f.total >= mostWatchers:
		return nil, nil, tooMany("%d watch this server, the most at a time", f.total)
	}
	if one = f.open[tenant]; one == nil {
		if len(f.open) >= mostFeeds && !f.evict() {
			return nil, nil, tooMany("%d tenants watch this server, the most at a time", len(f.open))
		}
		one = newFeed(report.Scope{Tenant: tenant})
		f.open[tenant] = one
	}
	one.watchers++
	f.watchers[c.Account]++
	f.total++
	select {
	case f.begun <- struct{}{}:
	default:
	}
	return one, func() { f.leave(c, one) }, nil
}

func (f *feeds) leave(c trust.Caller, one *feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one.left = time.Now()
	one.watchers--
	f.total--
	if f.watchers[c.Account]--; f.watchers[c.Account] == 0 {
		delete(f.watchers, c.Account)
	}
}

// clean lets go of feeds that have had no watcher for a while.
func (f *feeds) clean(now time.Time) {
	for tenant, one := range f.open {
		if one.watchers == 0 && now.Sub(one.left) > keepFeed {
			delete(f.open, tenant)
		}
	}
}

// evict lets go of the feed that has had no watcher for longest; false: all
// have some.
func (f *feeds) evict() bool {
	var oldest *feed
	for _, one := range f.open {
		if one.watchers == 0 && (oldest == nil || one.left.Before(oldest.left)) {
			oldest = one
		}
	}
	if oldest != nil {
		delete(f.open, oldest.scope.Tenant)
	}
	return oldest != nil
}

// list are the open feeds, or only those with watchers.
func (f *feeds) list(watched bool) (list []*feed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, one := range f.open {
		if one.watchers > 0 || !watched {
			list = append(list, one)
		}
	}
	return list
}

// state tells a change of state to the feeds whose scope holds it.
func (f *feeds) state(s report.Sample) {
	for _, one := range f.list(false) {
		if one.scope.Holds(s.Lease) {
			one.add(api.EventState, s)
		}
	}
}

// samples tells what the parts of a host said, in events of bounded size.
func (f *feed) samples(said encoded) {
	said.of(f.scope).lists(samplesOfEvent, func(list []byte) { f.addText(api.EventSamples, list) })
}
