package vxswitch

// listed is a VXB's place in a ring of VXBs.
type listed struct {
	prev, next *vxb
	in         bool
}

// ring is a circular list of VXBs linked by one of their places.
type ring struct {
	place func(*vxb) *listed
	at    *vxb
	size  int
}

// set puts x where the cursor comes last, or takes it out. O(1).
func (r *ring) set(x *vxb, in bool) {
	p := r.place(x)
	if p.in == in {
		return
	}
	p.in = in
	if in {
		r.add(x, p)
	} else {
		r.remove(x, p)
	}
}

func (r *ring) add(x *vxb, p *listed) {
	r.size++
	if r.at == nil {
		p.prev, p.next, r.at = x, x, x
		return
	}
	head := r.place(r.at)
	p.prev, p.next = head.prev, r.at
	r.place(head.prev).next = x
	head.prev = x
}

func (r *ring) remove(x *vxb, p *listed) {
	r.size--
	if r.size == 0 {
		r.at = nil
	} else {
		r.place(p.prev).next, r.place(p.next).prev = p.next, p.prev
		if r.at == x {
			r.at = p.next
		}
	}
	p.prev, p.next = nil, nil
}

// last is the one that was put in last.
func (r *ring) last() *vxb { return r.place(r.at).prev }

func borrowPlace(x *vxb) *listed  { return &x.borrows }
func surplusPlace(x *vxb) *listed { return &x.surplus }
