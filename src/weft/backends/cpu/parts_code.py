"""How a grid is divided among threads, as LLVM IR."""

from __future__ import annotations

from . import pool_layout as pool
from .engine import Engine
from .places import words_at

HEAD_NS = 10_000
"""What a thread takes of its part at once, if nobody was there before: the whole, or half of a longer one. The rest is
taken in chunks, by whoever has nothing else to do."""

PARTS = f"""define i64 @weft_parts(ptr %base, ptr %state, i64 %parts, i64 %left, double %ns, i64 %cut) {{
entry:
  %first = load i64, ptr %state
  %end = add i64 %first, %left
  %hot.i = load i64, ptr {words_at("words engine", Engine.HOT)}
  %hot = sitofp i64 %hot.i to double
  %lead = fdiv double %hot, %ns
  %lead.i = fptosi double %lead to i64
  %shared = sub i64 %left, %lead.i
  %size.0 = sdiv i64 %shared, %parts
  %size = call i64 @llvm.smax.i64(i64 %size.0, i64 1)
  %others = sub i64 %parts, 1
  %even = mul i64 %size, %parts
  %odd = sub i64 %shared, %even
  %rest = call i64 @llvm.smax.i64(i64 %odd, i64 0)
  %whole = mul i64 %size, %others
  %theirs = add i64 %whole, %rest
  %begin = sub i64 %end, %theirs
  %longest = add i64 %size, 1
  %quick = fdiv double {HEAD_NS:.1f}, %ns
  %quick.i = fptosi double %quick to i64
  %short = icmp sle i64 %size, %quick.i
  %half = sdiv i64 %size, 2
  %some = call i64 @llvm.smin.i64(i64 %half, i64 %quick.i)
  %much = select i1 %short, i64 %longest, i64 %some
  %head = call i64 @weft_within(i64 %much, i64 %cut)
  %first.head = add i64 %head, %lead.i
  %mine = call i64 @weft_within(i64 %first.head, i64 %cut)
  %base.end = getelementptr i8, ptr %base, i64 {pool.END}
  %base.head = getelementptr i8, ptr %base, i64 {pool.HEAD}
  store i64 %first, ptr %base
  store i64 %begin, ptr %base.end
  store i64 %mine, ptr %base.head
  br label %part
part:
  %k = phi i64 [ 1, %entry ], [ %k1, %part ]
  %from = phi i64 [ %begin, %entry ], [ %to, %part ]
  %longer = icmp sle i64 %k, %rest
  %one = zext i1 %longer to i64
  %own = add i64 %size, %one
  %to = add i64 %from, %own
  %skip = mul i64 %k, {pool.LINE}
  %line = getelementptr i8, ptr %base, i64 %skip
  %line.end = getelementptr i8, ptr %line, i64 {pool.END}
  store i64 %from, ptr %line
  store i64 %to, ptr %line.end
  %line.head = getelementptr i8, ptr %line, i64 {pool.HEAD}
  store i64 %head, ptr %line.head
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %parts
  br i1 %more, label %part, label %done
done:
  ret i64 %size
}}

define i64 @weft_within(i64 %count, i64 %most) {{
  %some = call i64 @llvm.smin.i64(i64 %count, i64 %most)
  %one = call i64 @llvm.smax.i64(i64 %some, i64 1)
  ret i64 %one
}}
"""
"""Divide a grid: parts that differ by one program, the caller's longer by what it does until the others begin. Gives
the size of theirs."""
