//! Order statistics and lines, as the estimators need them. Empty input gives none.

use std::f64::consts::FRAC_PI_2;

/// The `p` quantile, `0 <= p <= 1`, linear between order statistics (Hyndman and Fan's type 7).
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = p * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    Some(sorted[low] + (sorted[high] - sorted[low]) * (place - low as f64))
}

/// The middle value.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// Arithmetic mean.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Sample standard deviation (n - 1); none below two values.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values)?;
    let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
    (values.len() > 1).then(|| (squares / (values.len() - 1) as f64).sqrt())
}

/// Least squares `y = a + b x`: (a, b); none without two different x.
pub fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sxx: f64 = points.iter().map(|p| (p.0 - mx) * (p.0 - mx)).sum();
    let sxy: f64 = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum();
    (sxx > 0.0).then(|| (my - sxy / sxx * mx, sxy / sxx))
}

/// The median, and half of its 90 % interval where the values are normal; none below two values.
pub fn median90(values: &[f64]) -> Option<(f64, f64)> {
    // its standard deviation over the mean's, of normal values
    const WORSE: [f64; 8] = [1.0, 1.160, 1.092, 1.198, 1.135, 1.214, 1.160, 1.223];
    let (middle, spread, n) = (median(values)?, deviation(values)?, values.len());
    let worse = WORSE.get(n - 2).copied().unwrap_or(FRAC_PI_2.sqrt());
    Some((middle, worse * student90(n - 1) * spread / (n as f64).sqrt()))
}

/// Student's t, 95 % one-sided (90 % two-sided), for so many degrees of freedom (at least 1).
pub fn student90(freedom: usize) -> f64 {
    const TABLE: [f64; 10] = [6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812];
    match freedom {
        0 => TABLE[0],
        1..=10 => TABLE[freedom - 1],
        n => 1.645 + 1.55 / n as f64, // within 0.003 of the table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(quantile(&[0.0, 10.0], 0.25), Some(2.5));
        assert_eq!(median(&[]), None);
        assert_eq!(mean(&[1.0, 2.0]), Some(1.5));
        assert!((deviation(&[1.0, 3.0]).unwrap() - 2f64.sqrt()).abs() < 1e-12);
        assert_eq!(deviation(&[1.0]), None);
        assert_eq!(line(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]), Some((1.0, 2.0)));
        assert_eq!(line(&[(1.0, 1.0), (1.0, 3.0)]), None);
        assert!((student90(20) - 1.725).abs() < 0.003 && (student90(60) - 1.671).abs() < 0.003);
        assert_eq!([0, 1, 2, 10].map(student90), [6.314, 6.314, 2.920, 1.812]);
    }
}
