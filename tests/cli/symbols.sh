#!/usr/bin/env bash
# What the libraries show and need: every public function and nothing else, a SONAME, no BLAS outside of libmoirai-learn.
# Usage: symbols.sh BUILD_DIR SOURCE_DIR
set -euo pipefail
export LC_ALL=C
build=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { echo "FAILED: $*"; exit 1; }

exported() { nm -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' | sort -u; }
needed() { readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }

exported "$build/src/libmoirai.so" >"$work/shown"
cat "$source"/include/moirai/*.h | tr '\n' ' ' | grep -oE 'MOIRAI_API [^;(]*\(' | grep -oE 'moirai_[a-z0-9_]+\($' | tr -d '(' | sort -u >"$work/public"
[ "$(wc -l <"$work/public")" -gt 100 ] || die "the headers declare only $(wc -l <"$work/public") functions: read wrongly?"
diff "$work/public" "$work/shown" >"$work/diff" || die "declared (<) and exported (>) differ: $(grep '^[<>]' "$work/diff" | tr '\n' ' ')"
echo "ok: libmoirai.so exports the $(wc -l <"$work/public") functions of the headers and nothing else"

major=$(sed -n 's/^project(moirai VERSION \([0-9]*\)\..*/\1/p' "$source/CMakeLists.txt")
readelf -d "$build/src/libmoirai.so" | grep "SONAME.*\[libmoirai.so.$major\]" >/dev/null || die "the SONAME is not libmoirai.so.$major"
grep -q "^MOIRAI_$major {" "$source/cmake/libmoirai.map" || die "the map's node is not MOIRAI_$major"
echo "ok: SONAME libmoirai.so.$major"

for file in libmoirai.so moirai; do
    ! needed "$build/src/$file" | grep -iE 'blas|lapack|gfortran' || die "$file needs a BLAS"
done
echo "ok: no BLAS in libmoirai.so and in the command"
if [ -f "$build/src/libmoirai-learn.so" ]; then
    [ "$(exported "$build/src/libmoirai-learn.so")" = moirai_learnt_library ] || die "libmoirai-learn.so shows: $(exported "$build/src/libmoirai-learn.so" | head | tr '\n' ' ')"
    ! needed "$build/src/libmoirai-learn.so" | grep -iE 'highs|moirai' || die "libmoirai-learn.so needs more than its BLAS"
    echo "ok: libmoirai-learn.so shows its door alone"
fi
