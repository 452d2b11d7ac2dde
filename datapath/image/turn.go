package image

import (
	"cmp"
	"context"
	"slices"
)

// How many images are fetched at a time, and for one tenant: more make none ready sooner.
// So endless images of one tenant leave turns for others.
const (
	atOnce   = 4
	ofTenant = 2
)

// wish is what a node waits for.
type wish struct{ tenant, key string }

// Want says, before Get, for which node of which tenant an image is. What all nodes have
// left that wanted it is fetched no further.
func (s *Store) Want(node, tenant, name string, owner Owner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := wish{tenant, keyOf(name, owner)}
	if s.wishes[node] != now {
		s.leave(node)
		s.wishes[node] = now
	}
}

// Leave says that a node waits for an image no longer.
func (s *Store) Leave(node string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave(node)
}

func (s *Store) leave(node string) {
	was, waits := s.wishes[node]
	delete(s.wishes, node)
	f := s.fetches[was.key]
	if !waits || f == nil || f.over() || len(s.wanting(was.key)) > 0 {
		return
	}
	f.cancel()
	delete(s.fetches, was.key)
}

// wanting lists the tenants whose nodes wait for an image.
func (s *Store) wanting(key string) (tenants []string) {
	for _, w := range s.wishes {
		if w.key == key && !slices.Contains(tenants, w.tenant) {
			tenants = append(tenants, w.tenant)
		}
	}
	return tenants
}

// turn is one fetch's that has begun or waits to. It counts for the tenant of those who
// want it that has the fewest.
type turn struct {
	key, tenant string
	begun       chan struct{}
}

// take waits until a fetch may begin.
func (s *Store) take(ctx context.Context, key string) (*turn, error) {
	t := &turn{key: key, begun: make(chan struct{})}
	s.mu.Lock()
	s.waiting = append(s.waiting, t)
	s.begin()
	s.mu.Unlock()
	select {
	case <-t.begun:
		return t, nil
	case <-ctx.Done():
		s.end(t)
		return nil, ctx.Err()
	}
}

// end gives a turn back, or waits for it no longer.
func (s *Store) end(t *turn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	is := func(other *turn) bool { return other == t }
	s.waiting, s.running = slices.DeleteFunc(s.waiting, is), slices.DeleteFunc(s.running, is)
	s.begin()
}

// begin lets those begin that may: first of the tenant with the fewest, then by time.
func (s *Store) begin() {
	for len(s.running) < atOnce {
		best, fewest := -1, ofTenant
		for i, t := range s.waiting {
			tenant, has := s.least(t.key)
			if has < fewest {
				best, fewest, t.tenant = i, has, tenant
			}
		}
		if best < 0 {
			return
		}
		t := s.waiting[best]
		s.waiting, s.running = slices.Delete(s.waiting, best, best+1), append(s.running, t)
		close(t.begun)
	}
}

// least is the tenant of those who want an image with the fewest turns, and how many.
func (s *Store) least(key string) (tenant string, has int) {
	tenants := s.wanting(key)
	if len(tenants) == 0 {
		tenants = []string{""}
	}
	count := func(of string) (n int) {
		for _, t := range s.running {
			if t.tenant == of {
				n++
			}
		}
		return n
	}
	tenant = slices.MinFunc(tenants, func(a, b string) int { return cmp.Compare(count(a), count(b)) })
	return tenant, count(tenant)
}
