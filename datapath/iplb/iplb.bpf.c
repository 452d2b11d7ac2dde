//go:build ignore

/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Explicit multipath from the end host (Nakamura, thesis, section 5.3): a packet
 * to a prefix gets one IPv4 header per relay of the path its flow is on, all
 * from one template in one pass. Two look-ups, however many headers: the
 * prefix, and the flow.
 *
 * iplb_tx runs where packets leave for the fabric; iplb_relay where packets
 * come from the fabric, at relays and receivers.
 */
#include "encap_list.h"
#include "encap_srv6.h"
#include "encap_stack.h"
#include "path_mtu.h"
#include "probe.h"
#include "relay.h"
#include "select.h"

/* Puts the headers of a path in front of a packet. */
static __always_inline int encapsulate(struct __sk_buff *skb, const struct path *p, const struct flow_key *k, __u32 hash, __u8 tos, __u32 length)
{
	__u32 count = p->count, room, mtu;

	if (!count) /* the fabric's own way */
		return became(OUTCOME_SPREAD, TCX_NEXT);
	if (count > RELAYS)
		return became(OUTCOME_NATIVE, TCX_NEXT);
	room = room_of(p, count, k);
	if (length + room > 0xffff) /* a large packet, and no header has a length for it */
		return became(OUTCOME_REFUSED, TCX_NEXT);
	mtu = room_for(skb, room, k);
	if (unlikely(mtu))
		return too_big(skb, k, mtu);
	if (p->form == FORM_SRV6)
		return segments(skb, p, count, tos, length, hash);
	return p->form == FORM_UDP ? list_of(skb, p, count, k, hash, tos, length) : stack(skb, p, count, k, tos, length);
}

SEC("tc")
int iplb_tx(struct __sk_buff *skb)
{
	const void *data;
	struct flow_key key;
	struct counts *load;
	struct path *p;
	__u32 path, segments, length, hash;
	__u8 tos;

	if (is_foreign(skb) || skb->mark == MARK_PROBE)
		return TCX_NEXT;
	data = reach(skb, ETH_HLEN + IPH);
	if (!data)
		return TCX_NEXT;
	const struct iphdr *ip = data + ETH_HLEN;

	tos = ip->tos;
	/* A short frame may be padded; what is to be segmented has its length elsewhere. */
	length = skb->gso_size ? skb->len - ETH_HLEN : bpf_ntohs(ip->tot_len);
	if (length > skb->len - ETH_HLEN || length < IPH)
		return TCX_NEXT;
	read_flow(skb, &key, ip);
	hash = hash_of(&key);
	segments = segments_of(skb);
	path = path_for(&key, skb->len, segments, hash);
	if (path == OTHERS)
		return TCX_NEXT;
	p = path_of(path);
	if (!p || !p->up)
		return became(OUTCOME_NATIVE, TCX_NEXT);
	load = bpf_map_lookup_elem(&loads, &path);
	COUNT(load, segments, skb->len);
	return encapsulate(skb, p, &key, hash, tos, length);
}

SEC("tc")
int iplb_relay(struct __sk_buff *skb)
{
	const struct iphdr *ip;
	const void *data;
	int verdict;

	if (is_foreign(skb))
		return TCX_NEXT;
	data = reach(skb, ETH_HLEN + IPH);
	if (!data)
		return TCX_NEXT;
	ip = data + ETH_HLEN;
	if (!is_local(ip->daddr)) {
		verdict = forward(skb);
		return verdict == TCX_NEXT ? TCX_NEXT : became(OUTCOME_FORWARDED, verdict);
	}
	switch (ip->protocol) {
	case IPPROTO_IPIP:
		return unstack(skb, IPPROTO_IPIP, IPH);
	case IPPROTO_GRE:
		return unstack(skb, IPPROTO_GRE, IPH + GREH);
	case IPPROTO_UDP:
		return visit(skb);
	}
	return TCX_NEXT;
}

SEC("tc")
int iplb_echo(struct __sk_buff *skb)
{
	const struct iphdr *ip;
	const struct udphdr *udp;
	const struct probe_text *text;
	const void *data;

	if (is_foreign(skb))
		return TCX_NEXT;
	data = reach(skb, ETH_HLEN + IPH + 8);
	if (!data)
		return TCX_NEXT;
	ip = data + ETH_HLEN;
	udp = data + ETH_HLEN + IPH;
	if (ip->ihl != 5 || ip->protocol != IPPROTO_UDP || ip->saddr != ip->daddr || udp->dest != bpf_htons(PORT_PROBE))
		return TCX_NEXT;
	data = reach(skb, ETH_HLEN + IPH + 8 + sizeof(*text));
	if (!data)
		return TCX_NEXT;
	text = data + ETH_HLEN + IPH + 8;
	return text->magic == PROBE_MAGIC ? hear(text) : TCX_NEXT;
}

LICENSE;
