// The height that is left on the screen below the head of a view.

import { useEffect, useState } from "preact/hooks";

export function useWindowHeight(used: number, least: number): number {
  const measure = () => Math.max(least, window.innerHeight - used);
  const [height, setHeight] = useState(measure);
  useEffect(() => {
    const listen = () => setHeight(measure());
    window.addEventListener("resize", listen);
    return () => window.removeEventListener("resize", listen);
  }, []);
  return height;
}
