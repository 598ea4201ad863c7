; Words in memory: by their offset in bytes, and by their number in a row of words.

define internal i64 @get(ptr %base, i64 %offset) alwaysinline {
  %place = getelementptr i8, ptr %base, i64 %offset
  %value = load i64, ptr %place, align 8
  ret i64 %value
}

define internal ptr @get.ptr(ptr %base, i64 %offset) alwaysinline {
  %place = getelementptr i8, ptr %base, i64 %offset
  %value = load ptr, ptr %place, align 8
  ret ptr %value
}

define internal void @set(ptr %base, i64 %offset, i64 %value) alwaysinline {
  %place = getelementptr i8, ptr %base, i64 %offset
  store i64 %value, ptr %place, align 8
  ret void
}

define internal void @set.ptr(ptr %base, i64 %offset, ptr %value) alwaysinline {
  %place = getelementptr i8, ptr %base, i64 %offset
  store ptr %value, ptr %place, align 8
  ret void
}

define internal i64 @word(ptr %row, i64 %number) alwaysinline {
  %place = getelementptr i64, ptr %row, i64 %number
  %value = load i64, ptr %place, align 8
  ret i64 %value
}

define internal ptr @word.ptr(ptr %row, i64 %number) alwaysinline {
  %place = getelementptr i64, ptr %row, i64 %number
  %value = load ptr, ptr %place, align 8
  ret ptr %value
}

define internal double @word.double(ptr %row, i64 %number) alwaysinline {
  %place = getelementptr i64, ptr %row, i64 %number
  %value = load double, ptr %place, align 8
  ret double %value
}

define internal void @set.word(ptr %row, i64 %number, i64 %value) alwaysinline {
  %place = getelementptr i64, ptr %row, i64 %number
  store i64 %value, ptr %place, align 8
  ret void
}

define internal i64 @get.i32(ptr %base, i64 %offset) alwaysinline {
  %place = getelementptr i8, ptr %base, i64 %offset
  %value = load i32, ptr %place, align 4
  %wide = zext i32 %value to i64
  ret i64 %wide
}
