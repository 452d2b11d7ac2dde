/* SPDX-License-Identifier: (GPL-2.0 WITH Linux-syscall-note) OR BSD-2-Clause */
/*
 * What our programs need of Linux, so that a build does not depend on the
 * build machine's headers. Layouts and values as in include/uapi/linux/
 * {types,bpf,pkt_cls,if_ether,ip,ipv6,udp,tcp,icmp,icmpv6}.h of Linux 6.6;
 * all of them are stable interfaces or formats on the wire.
 */
#pragma once

typedef unsigned char __u8;
typedef signed char __s8;
typedef short int __s16;
typedef short unsigned int __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long int __s64;
typedef long long unsigned int __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u64 __be64;
typedef __u16 __sum16;
typedef __u32 __wsum;
typedef _Bool bool;

#define true 1
#define false 0
#define NULL ((void *)0)

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PROG_ARRAY = 3,
	BPF_MAP_TYPE_PERF_EVENT_ARRAY = 4,
	BPF_MAP_TYPE_PERCPU_HASH = 5,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_LRU_PERCPU_HASH = 10,
	BPF_MAP_TYPE_LPM_TRIE = 11,
	BPF_MAP_TYPE_ARRAY_OF_MAPS = 12,
	BPF_MAP_TYPE_HASH_OF_MAPS = 13,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
	BPF_EXIST = 2,
};

enum {
	BPF_F_NO_PREALLOC = 1U << 0,
};

/* Verdicts of a program at a TCX hook. TCX_NEXT goes on to the next program. */
enum tcx_action_base {
	TCX_NEXT = -1,
	TCX_PASS = 0,
	TCX_DROP = 2,
	TCX_REDIRECT = 7,
};

enum {
	TC_ACT_UNSPEC = -1,
	TC_ACT_OK = 0,
	TC_ACT_SHOT = 2,
	TC_ACT_REDIRECT = 7,
};

enum bpf_adj_room_mode {
	BPF_ADJ_ROOM_NET = 0,
	BPF_ADJ_ROOM_MAC = 1,
};

enum {
	BPF_F_ADJ_ROOM_FIXED_GSO = 1ULL << 0,
	BPF_F_ADJ_ROOM_ENCAP_L3_IPV4 = 1ULL << 1,
	BPF_F_ADJ_ROOM_ENCAP_L3_IPV6 = 1ULL << 2,
	BPF_F_ADJ_ROOM_ENCAP_L4_GRE = 1ULL << 3,
	BPF_F_ADJ_ROOM_ENCAP_L4_UDP = 1ULL << 4,
	BPF_F_ADJ_ROOM_NO_CSUM_RESET = 1ULL << 5,
	BPF_F_ADJ_ROOM_ENCAP_L2_ETH = 1ULL << 6,
	BPF_F_ADJ_ROOM_DECAP_L3_IPV4 = 1ULL << 7,
	BPF_F_ADJ_ROOM_DECAP_L3_IPV6 = 1ULL << 8,
};

#define BPF_ADJ_ROOM_ENCAP_L2_SHIFT 56
#define BPF_F_ADJ_ROOM_ENCAP_L2(len) (((__u64)(len) & 0xff) << BPF_ADJ_ROOM_ENCAP_L2_SHIFT)

/* Flags of bpf_skb_store_bytes and of the checksum helpers. */
enum {
	BPF_F_RECOMPUTE_CSUM = 1ULL << 0,
	BPF_F_INVALIDATE_HASH = 1ULL << 1,
	BPF_F_HDR_FIELD_MASK = 0xfULL,
	BPF_F_PSEUDO_HDR = 1ULL << 4,
	BPF_F_MARK_MANGLED_0 = 1ULL << 5,
};

/* Flag of bpf_redirect: to the device's ingress. */
enum {
	BPF_F_INGRESS = 1ULL << 0,
};

/* Flags of bpf_skb_set_tunnel_key and bpf_skb_get_tunnel_key. */
enum {
	BPF_F_TUNINFO_IPV6 = 1ULL << 0,
	BPF_F_ZERO_CSUM_TX = 1ULL << 1,
	BPF_F_DONT_FRAGMENT = 1ULL << 2,
};

struct bpf_tunnel_key {
	__u32 tunnel_id;
	union {
		__u32 remote_ipv4;
		__u32 remote_ipv6[4];
	};
	__u8 tunnel_tos;
	__u8 tunnel_ttl;
	union {
		__u16 tunnel_ext;
		__be16 tunnel_flags;
	};
	__u32 tunnel_label;
	union {
		__u32 local_ipv4;
		__u32 local_ipv6[4];
	};
};

enum bpf_hdr_start_off {
	BPF_HDR_START_MAC = 0,
	BPF_HDR_START_NET = 1,
};

#define PACKET_HOST 0
#define PACKET_BROADCAST 1
#define PACKET_MULTICAST 2
#define PACKET_OTHERHOST 3

struct bpf_flow_keys;
struct bpf_sock;

#define __bpf_md_ptr(type, name) \
	union { \
		type name; \
		__u64 : 64; \
	} __attribute__((aligned(8)))

/* A packet, as a program sees it. Fields are rewritten on load. */
struct __sk_buff {
	__u32 len;
	__u32 pkt_type;
	__u32 mark;
	__u32 queue_mapping;
	__u32 protocol; /* network order */
	__u32 vlan_present;
	__u32 vlan_tci;
	__u32 vlan_proto;
	__u32 priority;
	__u32 ingress_ifindex;
	__u32 ifindex;
	__u32 tc_index;
	__u32 cb[5];
	__u32 hash;
	__u32 tc_classid;
	__u32 data;
	__u32 data_end;
	__u32 napi_id;
	__u32 family;
	__u32 remote_ip4;
	__u32 local_ip4;
	__u32 remote_ip6[4];
	__u32 local_ip6[4];
	__u32 remote_port;
	__u32 local_port;
	__u32 data_meta;
	__bpf_md_ptr(struct bpf_flow_keys *, flow_keys);
	__u64 tstamp;
	__u32 wire_len;
	__u32 gso_segs;
	__bpf_md_ptr(struct bpf_sock *, sk);
	__u32 gso_size;
	__u8 tstamp_type;
	__u32 : 24;
	__u64 hwtstamp;
};

#define ETH_ALEN 6
#define ETH_HLEN 14
#define ETH_P_IP 0x0800
#define ETH_P_ARP 0x0806
#define ETH_P_8021Q 0x8100
#define ETH_P_IPV6 0x86dd
#define ETH_P_8021AD 0x88a8
#define ETH_P_TEB 0x6558
#define ETH_P_NSH 0x894f

struct ethhdr {
	__u8 h_dest[ETH_ALEN];
	__u8 h_source[ETH_ALEN];
	__be16 h_proto;
} __attribute__((packed));

struct vlan_hdr {
	__be16 h_vlan_TCI;
	__be16 h_vlan_encapsulated_proto;
};

struct arphdr_eth_ip {
	__be16 ar_hrd;
	__be16 ar_pro;
	__u8 ar_hln;
	__u8 ar_pln;
	__be16 ar_op;
	__u8 ar_sha[ETH_ALEN];
	__u8 ar_sip[4];
	__u8 ar_tha[ETH_ALEN];
	__u8 ar_tip[4];
} __attribute__((packed));

#define IPPROTO_ICMP 1
#define IPPROTO_IPIP 4
#define IPPROTO_TCP 6
#define IPPROTO_UDP 17
#define IPPROTO_IPV6 41
#define IPPROTO_ROUTING 43
#define IPPROTO_FRAGMENT 44
#define IPPROTO_GRE 47
#define IPPROTO_ESP 50
#define IPPROTO_ICMPV6 58
#define IPPROTO_HOPOPTS 0
#define IPPROTO_DSTOPTS 60

#define IP_DF 0x4000
#define IP_MF 0x2000
#define IP_OFFSET 0x1fff

struct iphdr {
	__u8 ihl : 4, version : 4;
	__u8 tos;
	__be16 tot_len;
	__be16 id;
	__be16 frag_off;
	__u8 ttl;
	__u8 protocol;
	__sum16 check;
	__be32 saddr;
	__be32 daddr;
};

struct in6_addr {
	union {
		__u8 u6_addr8[16];
		__be32 u6_addr32[4];
	};
};

struct ipv6hdr {
	__u8 priority : 4, version : 4;
	__u8 flow_lbl[3];
	__be16 payload_len;
	__u8 nexthdr;
	__u8 hop_limit;
	struct in6_addr saddr;
	struct in6_addr daddr;
};

struct udphdr {
	__be16 source;
	__be16 dest;
	__be16 len;
	__sum16 check;
};

struct tcphdr {
	__be16 source;
	__be16 dest;
	__be32 seq;
	__be32 ack_seq;
	__u16 res1 : 4, doff : 4, fin : 1, syn : 1, rst : 1, psh : 1, ack : 1, urg : 1, ece : 1, cwr : 1;
	__be16 window;
	__sum16 check;
	__be16 urg_ptr;
};

struct icmphdr {
	__u8 type;
	__u8 code;
	__sum16 checksum;
	__be16 id;
	__be16 sequence;
};

struct icmp6hdr {
	__u8 icmp6_type;
	__u8 icmp6_code;
	__sum16 icmp6_cksum;
	__be32 icmp6_dataun;
};

/* For bpf_fib_lookup: in, a packet; out, its route and neighbour. */
struct bpf_fib_lookup {
	__u8 family;
	__u8 l4_protocol;
	__be16 sport;
	__be16 dport;
	__u16 tot_len; /* in: of the packet; out: the route's MTU */
	__u32 ifindex; /* in: where it came from; out: where it goes */
	__be32 flowinfo; /* IPv6; of IPv4 its first byte is tos */
	union {
		__be32 ipv4_src;
		__be32 ipv6_src[4];
	};
	union {
		__be32 ipv4_dst;
		__be32 ipv6_dst[4];
	};
	__be16 h_vlan_proto;
	__be16 h_vlan_TCI;
	__u8 smac[ETH_ALEN];
	__u8 dmac[ETH_ALEN];
};

enum {
	BPF_FIB_LKUP_RET_SUCCESS = 0,
};

/* For bpf_redirect_neigh: the next hop. */
struct bpf_redir_neigh {
	__u32 nh_family;
	union {
		__be32 ipv4_nh;
		__u32 ipv6_nh[4];
	};
};

#define AF_INET 2
