package server

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"

	"sublet/trust"
	"sublet/vnet"
)

// Notices is what the operator says of notices that go out.
type Notices struct {
	URL      string         // to which everybody's events are posted; "": none
	Mail     string         // address that is told of what needs somebody; "": none
	Key      []byte         // by which what is posted to URL is signed
	Allow    []netip.Prefix // internal addresses that tenants' events may be posted to
	Sendmail string         // program that sends mail; "": none is sent
	From     string         // address of its sender
}

// Bounds of notices. What exceeds them is lost, and counted.
const (
	mostNotices   = 256 // that wait for one tenant and medium
	mostPosts     = 32  // requests of tenants at a time
	noticeTries   = 8   // some two minutes, by noticeBackoff
	noticeBackoff = time.Second
	longestPause  = time.Minute
	noticeTimeout = 5 * time.Second
	mailTimeout   = 30 * time.Second
	noticePause   = 100 * time.Millisecond // between two of one tenant and medium
	mailsAtOnce   = 20
	mailEvery     = 3 * time.Minute // one more
)

// medium is how a notice goes out.
type medium string

const (
	byPost medium = "webhook"
	byMail medium = "mail"
)

// errFinal is wrapped by what no other try mends.
var errFinal = errors.New("not sent")

// notifier tells tenants, and the operator, of events elsewhere. To whoever tells it
// of events it is a queue that never blocks.
type notifier struct {
	config  Notices
	backoff time.Duration
	post    func(ctx context.Context, to vnet.Notify, free bool, h vnet.Happening) error
	mail    func(ctx context.Context, to vnet.Notify, h vnet.Happening) error
	posts   chan struct{} // slots
	ctx     context.Context
	cancel  func()
	running sync.WaitGroup
	sent    *prometheus.CounterVec
	lost    *prometheus.CounterVec

	mu       sync.Mutex
	targets  map[vnet.TenantID]vnet.Notify
	boxes    map[boxKey]*outbox
	mails    map[vnet.TenantID]*rate.Limiter // to the operator, by the account that they are about
	internal map[netip.Addr]bool             // addresses of the substrate
}

type boxKey struct {
	tenant vnet.TenantID // "": the operator
	medium medium
}

// outbox is what waits to go out to one tenant by one medium.
type outbox struct {
	waiting []vnet.Happening
	busy    bool
	lost    uint64
	problem string        // of the last try; "": it succeeded
	mails   *rate.Limiter // to a tenant
}

func newNotifier(config Notices, registry *prometheus.Registry) *notifier {
	n := &notifier{
		config: config, backoff: noticeBackoff, posts: make(chan struct{}, mostPosts),
		targets: make(map[vnet.TenantID]vnet.Notify), boxes: make(map[boxKey]*outbox), mails: make(map[vnet.TenantID]*rate.Limiter),
		sent: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sublet_notices_sent_total", Help: "Notices that were taken where they went."}, []string{"medium"}),
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sublet_notices_lost_total", Help: "Notices that nobody took, or for which there was no room."}, []string{"medium"}),
	}
	for _, w := range []medium{byPost, byMail} {
		n.sent.WithLabelValues(string(w))
		n.lost.WithLabelValues(string(w))
	}
	waiting := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sublet_notices_waiting", Help: "Notices that have not gone out yet."}, n.waiting)
	registry.MustRegister(n.sent, n.lost, waiting)
	n.post, n.mail = n.postEvent, n.mailEvent
	n.ctx, n.cancel = context.WithCancel(context.Background())
	if config.URL != "" || config.Mail != "" {
		n.targets[""] = vnet.Notify{URL: config.URL, Mail: config.Mail, Secret: string(config.Key)}
	}
	return n
}

// stop gives up what has not gone out.
func (n *notifier) stop() {
	n.cancel()
	n.running.Wait()
}

func (n *notifier) waiting() float64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	sum := 0
	for _, b := range n.boxes {
		sum += len(b.waiting)
	}
	return float64(sum)
}

// forget drops where tenants are told: the book was read anew.
func (n *notifier) forget() {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.targets, func(t vnet.TenantID, _ vnet.Notify) bool { return t != "" })
}

// learn takes in where tenants are told.
func (n *notifier) learn(put []vnet.Notify, gone []vnet.TenantID, sub *vnet.Substrate) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range put {
		n.targets[t.Tenant] = t
	}
	for _, t := range gone {
		delete(n.targets, t)
	}
	if sub == nil {
		return
	}
	n.internal = make(map[netip.Addr]bool)
	for _, l := range sub.Links {
		for _, p := range l.Ports {
			n.internal[p.Address.Unmap()] = true
		}
	}
}

// tell has the event's tenant and the operator told, later.
func (n *notifier) tell(h vnet.Happening) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if h.Lease.Tenant != "" {
		n.enqueue(h.Lease.Tenant, h)
	}
	n.enqueue("", h)
}

// enqueue is called with n.mu held.
func (n *notifier) enqueue(tenant vnet.TenantID, h vnet.Happening) {
	target := n.targets[tenant]
	if target.URL != "" {
		n.add(boxKey{tenant, byPost}, h)
	}
	if target.Mail != "" && n.config.Sendmail != "" && mailed(h) && (tenant != "" || h.Kind != kindWaiting) {
		n.add(boxKey{tenant, byMail}, h)
	}
}

// mailing bounds the mails that one account causes, those to the operator too: whoever
// lets a network break and come back all the time hides nobody else's.
func (n *notifier) mailing(at boxKey, h vnet.Happening) bool {
	switch {
	case at.medium != byMail, at.tenant == "" && h.Lease.Tenant == "":
		return true
	case at.tenant != "":
		return n.boxes[at].mails.Allow()
	}
	account := trust.AccountOf(h.Lease.Tenant)
	l := n.mails[account]
	if l == nil {
		l = newMails()
		n.mails[account] = l
	}
	return l.Allow()
}

func newMails() *rate.Limiter { return rate.NewLimiter(rate.Every(mailEvery), mailsAtOnce) }

func (n *notifier) add(at boxKey, h vnet.Happening) {
	b := n.boxes[at]
	if b == nil {
		b = &outbox{mails: newMails()}
		n.boxes[at] = b
	}
	if len(b.waiting) >= mostNotices || !n.mailing(at, h) || n.ctx.Err() != nil {
		b.lost++
		n.lost.WithLabelValues(string(at.medium)).Inc()
		return
	}
	b.waiting = append(b.waiting, h)
	if !b.busy {
		b.busy = true
		n.running.Go(func() { n.empty(at, b) })
	}
}

// empty sends what waits, one after the other, until nothing does.
func (n *notifier) empty(at boxKey, b *outbox) {
	for {
		h, target, more := n.next(at, b)
		if !more {
			return
		}
		err := n.deliver(at, target, h)
		n.mu.Lock()
		b.problem = ""
		if err != nil {
			b.lost++
			b.problem = err.Error()
		}
		n.mu.Unlock()
		if err != nil {
			n.lost.WithLabelValues(string(at.medium)).Inc()
		} else {
			n.sent.WithLabelValues(string(at.medium)).Inc()
		}
		n.sleep(noticePause)
	}
}

// next takes out what is to be sent now. What waits for a target that is gone is dropped.
func (n *notifier) next(at boxKey, b *outbox) (h vnet.Happening, target vnet.Notify, more bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	target = n.targets[at.tenant]
	gone := at.medium == byPost && target.URL == "" || at.medium == byMail && target.Mail == ""
	if len(b.waiting) == 0 || gone || n.ctx.Err() != nil {
		b.waiting, b.busy = nil, false
		return h, target, false
	}
	h, b.waiting = b.waiting[0], b.waiting[1:]
	return h, target, true
}

// deliver sends one notice, time and again.
func (n *notifier) deliver(at boxKey, target vnet.Notify, h vnet.Happening) (err error) {
	pause := n.backoff
	for try := range noticeTries {
		if try > 0 {
			n.sleep(pause)
			pause = min(2*pause, max(longestPause, n.backoff))
		}
		if err = n.once(at, target, h); err == nil || errors.Is(err, errFinal) || n.ctx.Err() != nil {
			return err
		}
	}
	return err
}

// once sends it. Tenants share slots, so that those who answer slowly cost a
// bounded number of connections; the operator's notices wait for none.
func (n *notifier) once(at boxKey, target vnet.Notify, h vnet.Happening) error {
	if at.tenant != "" {
		select {
		case n.posts <- struct{}{}:
			defer func() { <-n.posts }()
		case <-n.ctx.Done():
			return n.ctx.Err()
		}
	}
	if at.medium == byMail {
		ctx, cancel := context.WithTimeout(n.ctx, mailTimeout)
		defer cancel()
		return n.mail(ctx, target, h)
	}
	ctx, cancel := context.WithTimeout(n.ctx, noticeTimeout)
	defer cancel()
	return n.post(ctx, target, at.tenant == "", h)
}

func (n *notifier) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-n.ctx.Done():
	}
}

// became is what was lost of a tenant's notices, and what went wrong last.
func (n *notifier) became(tenant vnet.TenantID) (lost uint64, problem string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, w := range []medium{byPost, byMail} {
		if b := n.boxes[boxKey{tenant, w}]; b != nil {
			lost += b.lost
			if b.problem != "" {
				problem = string(w) + ": " + b.problem
			}
		}
	}
	return lost, problem
}
