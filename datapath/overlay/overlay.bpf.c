//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The overlay forwarding table: one look-up gives all outer headers of a
 * packet, and one pass puts them in front or takes them off.
 *
 * overlay_tx runs where a trunk brings a lease's frames to the host: the mark
 * of a frame says by which tunnel it goes. overlay_front runs on any device
 * whose packets say it themselves, in some bits at some place. overlay_rx runs
 * on the physical interfaces.
 */
#include "decap.h"
#include "encap.h"

/* On the host's end of a lease's trunk: the mark names the tunnel. Whatever is
 * not for one ends here, so that nothing of the host's stack sees it. */
SEC("tc")
int overlay_tx(struct __sk_buff *skb)
{
	__u32 id = skb->mark & ~MARK_CONTROL;

	if (unlikely(id & MARK_INBOUND)) {
		skb->mark = id & ~MARK_INBOUND;
		return bpf_redirect_peer(skb->ifindex, 0);
	}
	const struct entry *e = bpf_map_lookup_elem(&entries, &id);
	if (unlikely(!e))
		return drop(0, DROP_UNKNOWN);
	return send(skb, e, false);
}

/* At the other end of the GSO device: the pieces of what overlay_tx sent there. */
SEC("tc")
int overlay_segmented(struct __sk_buff *skb)
{
	__u32 id = skb->mark & ~MARK_CONTROL;
	const struct entry *e = bpf_map_lookup_elem(&entries, &id);

	if (!e)
		return drop(0, DROP_UNKNOWN);
	skb->priority = CLASS_MAJOR << 16 | skb->tc_index;
	skb->tc_index = 0;
	return send(skb, e, true);
}

/* On the device of a table of the operator's, whose packets name their entry
 * themselves. They are in no class of a lease. */
SEC("tc")
int overlay_front(struct __sk_buff *skb)
{
	__u32 index = skb->ifindex;

	if (unlikely(skb->mark == MARK_INBOUND)) {
		skb->mark = 0;
		return bpf_redirect_peer(skb->ifindex, 0);
	}
	skb->priority = 0;
	skb->mark = 0;
	const struct front *f = bpf_map_lookup_elem(&fronts, &index);
	const struct entry *e;
	struct name n = {};

	if (!f || f->bits > IDENTIFIER * 8)
		return drop(0, DROP_UNKNOWN);
	n.prefix = 32 + f->bits;
	n.profile = bpf_htonl(f->profile);
	__u32 bytes = (f->bits + 7) >> 3;
	if (bytes) {
		barrier_var(bytes);
		if (bytes > IDENTIFIER || bpf_skb_load_bytes(skb, f->offset, n.id, bytes))
			return drop(0, DROP_UNKNOWN);
		if (f->bits & 7 && bytes >= 1 && bytes <= IDENTIFIER)
			n.id[(bytes - 1) & (IDENTIFIER - 1)] &= 0xff00 >> (f->bits & 7);
	}
	e = f->longest ? bpf_map_lookup_elem(&prefixes, &n) : bpf_map_lookup_elem(&names, &n);
	if (!e)
		return drop(0, DROP_UNKNOWN);
	return send(skb, e, true);
}

/* Writes into a probe of a tunnel when it arrived: the agent that reads it may have
 * to wait for a processor. Probes bear no checksum. */
static __always_inline int arrived(struct __sk_buff *skb, const struct outer *o, const struct udphdr *udp)
{
	__u64 now = bpf_ktime_get_ns();
	__u32 at = o->at + sizeof(*udp), magic = 0;

	if (!udp->check && !o->damaged && ours(o) && !bpf_skb_load_bytes(skb, at, &magic, sizeof(magic)) && magic == LATENCY_MAGIC)
		bpf_skb_store_bytes(skb, at + LATENCY_ARRIVED, &now, sizeof(now), 0);
	return TCX_NEXT;
}

/* On a physical interface. What is no tunnel packet goes on to the host. */
SEC("tc")
int overlay_rx(struct __sk_buff *skb)
{
	struct outer o = {};
	struct udphdr udp = {};

	if (!read_outer(skb, &o))
		return TCX_NEXT;
	__u32 row = (__u32)o.protocol << 24;
	if (o.protocol == IPPROTO_UDP) {
		if (bpf_skb_load_bytes(skb, o.at, &udp, sizeof(udp)))
			return TCX_NEXT;
		row |= bpf_ntohs(udp.dest);
		o.port = bpf_ntohs(udp.source);
		if (likely(udp.dest == bpf_htons(PORT_VXLAN))) {
			if (unlikely(o.damaged))
				return refuse(&o, DROP_MALFORMED);
			if (o.at == ETH_HLEN + sizeof(struct iphdr))
				return accept_vxlan(skb, &o, ETH_HLEN + sizeof(struct iphdr));
			return accept_vxlan(skb, &o, ETH_HLEN + sizeof(struct ipv6hdr));
		}
		if (unlikely(udp.dest == bpf_htons(PORT_LATENCY)))
			return arrived(skb, &o, &udp);
	}
	if (unlikely(is_sealed(&o, &udp))) {
		leave_sealed(skb, &o);
		return TCX_NEXT;
	}
	if (o.protocol == IPPROTO_GRE) {
		__be16 gre[2];

		if (bpf_skb_load_bytes(skb, o.at, gre, sizeof(gre)))
			return TCX_NEXT;
		row |= bpf_ntohs(gre[1]) | (gre[0] & bpf_htons(0x2000) ? GRE_KEY : 0);
	}
	const struct format *f = bpf_map_lookup_elem(&formats, &row);
	if (!f)
		return TCX_NEXT;
	if (o.damaged || o.size > skb->len || (f->udp && bpf_ntohs(udp.len) != o.size - o.at))
		return refuse(&o, DROP_MALFORMED);
	return accept_any(skb, &o, f);
}

/* At the decap device: large packets without their tunnel headers. What did not come
 * by overlay_rx bears no such mark, as only the host's root can set one. */
SEC("tc")
int overlay_decapped(struct __sk_buff *skb)
{
	__u64 key = (__u64)KIND_VXLAN << 32 | (skb->mark & MARK_VNI);
	const struct tunnel_end *t = bpf_map_lookup_elem(&ends, &key);

	if ((skb->mark & MARK_KIND) != MARK_DECAP || !t)
		return drop(0, DROP_UNKNOWN);
	return received(skb, t, skb->protocol, segments_of(skb));
}

/* At the device of tunnels by the host's stack, whose headers the stack took off. What
 * did not come by the wire of a tunnel bears no such mark. Its sender is looked at again:
 * what came in ESP, overlay_rx could not read. */
SEC("tc")
int overlay_stacked(struct __sk_buff *skb)
{
	struct outer o = {};
	__u64 key = 0;

	if ((skb->mark & MARK_KIND) != MARK_DECAP || !read_taken_off(skb, &o, &key))
		return drop(0, DROP_UNKNOWN);
	const struct tunnel_end *t = bpf_map_lookup_elem(&ends, &key);
	if (!t || !ip6_equal(&t->local, &o.to))
		return drop(0, DROP_UNKNOWN);
	if (!may_send(t, key, &o.from))
		return drop(t->slot, DROP_SENDER);
	return received(skb, t, skb->protocol, segments_of(skb));
}

LICENSE;
